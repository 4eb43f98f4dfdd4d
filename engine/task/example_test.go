package task_test

import (
	"context"
	"fmt"
	"os"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// numbers is a source that emits ten numbers per shard.
type numbers struct{}

func (numbers) Open(*task.Context) error { return nil }
func (numbers) Close() error             { return nil }

func (numbers) ReadShard(c *task.Context, shard int, out task.Output) error {
	values := make([]int64, 10)
	for i := range values {
		values[i] = int64(10*shard + i)
	}
	rows, err := columnar.NewBatch(c.Allocator, columnar.MustSchema(columnar.Column{Name: "n", Type: "int64"}), values)
	if err != nil {
		return err
	}
	defer rows.Release()
	return out.Emit(shard, rows)
}

// sum adds up its input.
type sum struct{}

func (sum) Open(*task.Context) error { return nil }
func (sum) Close() error             { return nil }

func (sum) Process(c *task.Context, _, shard int, rows columnar.Batch, _ task.Output) error {
	values, err := columnar.Get[[]int64](rows, "n")
	for _, n := range values {
		c.Accumulate("sum", shard, float64(n))
	}
	return err
}

func (sum) EndShard(*task.Context, int, task.Output) error { return nil }
func (sum) Finish(*task.Context, task.Output) error        { return nil }

// A graph of two operators with a shuffle between them runs on three subtasks.
func Example() {
	graph := &plan.Graph{Shards: 8, Nodes: []plan.Node{
		{ID: 0, Op: "Numbers", Schema: []plan.Column{{Name: "n", Type: "int64"}}},
		{ID: 1, Op: "Sum", Sink: true, Inputs: []plan.Input{{From: 0, Partitioner: plan.Hash, Keys: []string{"n"}}}},
	}}
	compiled, err := plan.Compile(graph, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	bindings := task.Bindings{
		Sources:   map[plan.NodeID]func() task.Source{0: func() task.Source { return numbers{} }},
		Operators: map[plan.NodeID]func() task.Operator{1: func() task.Operator { return sum{} }},
	}
	report, err := task.Run(context.Background(), compiled, graph, bindings, task.Env{SpillDir: os.TempDir()})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range report.Vertices {
		in, out := int64(0), int64(0)
		for _, s := range v.Subtasks {
			in, out = in+s.RowsIn, out+s.RowsOut
		}
		fmt.Printf("%s: %d rows in, %d rows out\n", v.Name, in, out)
	}
	for _, a := range report.Accumulators {
		fmt.Printf("%s = %v\n", a.Name, a.Value)
	}
	// Output:
	// Numbers: 0 rows in, 80 rows out
	// Sum: 80 rows in, 80 rows out
	// sum = 3160
}

// RunParts runs the same plan on two workers; the first has two of the three slots. Each worker
// has bindings of its own, as separate processes have.
func ExampleRunParts() {
	graph := &plan.Graph{Shards: 8, Nodes: []plan.Node{
		{ID: 0, Op: "Numbers", Schema: []plan.Column{{Name: "n", Type: "int64"}}},
		{ID: 1, Op: "Sum", Sink: true, Inputs: []plan.Input{{From: 0, Partitioner: plan.Hash, Keys: []string{"n"}}}},
	}}
	compiled, err := plan.Compile(graph, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	bind := func(worker int) (task.Bindings, task.Env, error) {
		return task.Bindings{
			Sources:   map[plan.NodeID]func() task.Source{0: func() task.Source { return numbers{} }},
			Operators: map[plan.NodeID]func() task.Operator{1: func() task.Operator { return sum{} }},
		}, task.Env{SpillDir: os.TempDir()}, nil
	}
	slots := []sharding.Range{{Lo: 0, Hi: 2}, {Lo: 2, Hi: 3}}
	report, err := task.RunParts(context.Background(), compiled, graph, slots, bind)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(report.Vertices[1].Subtasks), "subtasks,", report.Accumulators[0].Name, "=", report.Accumulators[0].Value)
	// Output:
	// 3 subtasks, sum = 3160
}
