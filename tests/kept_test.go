package tests

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
)

// Operators of keptGraph besides those of graphOps.
const (
	tallyOp = -1 // passes rows on, counts and accumulates
	queueOp = -2 // a queue over one input, or over two if arg is odd; a further input is broadcast if arg%3 is 0
)

// keptGraph is a random graph with queues, of which some datasets are collected.
type keptGraph struct {
	steps     []step
	collected []bool
}

func (g keptGraph) String() string {
	var b strings.Builder
	for i, s := range g.steps {
		name := "Tally"
		switch {
		case s.op == queueOp:
			name = "Queue"
		case s.op >= 0:
			name = graphOps[s.op].name
		}
		fmt.Fprintf(&b, "%d: %s%v arg %d, %d rows, collected %v\n", i, name, s.in, s.arg, len(s.rows), g.collected[i])
	}
	return b.String()
}

func drawKeptGraph(rt *rapid.T) (g keptGraph) {
	g.steps = append(g.steps, drawSteps(rt)...)
	more := rapid.IntRange(1, 4).Draw(rt, "more")
	for i := range more {
		s := step{op: tallyOp, arg: rapid.IntRange(0, 11).Draw(rt, "arg")}
		if i == 0 || rapid.Bool().Draw(rt, "queue") {
			s.op = queueOp
		}
		for range 3 {
			s.in = append(s.in, rapid.IntRange(0, len(g.steps)-1).Draw(rt, "input"))
		}
		g.steps = append(g.steps, s)
	}
	for range g.steps {
		g.collected = append(g.collected, rapid.IntRange(0, 4).Draw(rt, "collected") == 0)
	}
	g.collected[len(g.steps)-1] = true
	return g
}

var errBomb = errors.New("the bomb went off")

// bomb fails the run after a number of ticks; a negative number never fails it.
type bomb struct{ left, ticks atomic.Int64 }

func (b *bomb) tick() error {
	b.ticks.Add(1)
	if b.left.Add(-1) == 0 {
		return errBomb
	}
	return nil
}

type tally struct {
	engine.BaseOperator
	bomb *bomb
	name string
	rows int
}

func (o *tally) Process(c *engine.Context, _, shard int, rows engine.Batch, out engine.Output) error {
	o.rows += rows.Len()
	c.Count("rows", int64(rows.Len()))
	if err := o.bomb.tick(); err != nil {
		return err
	}
	return out.Emit(shard, rows)
}

func (o *tally) EndShard(c *engine.Context, shard int, _ engine.Output) error {
	if o.rows > 0 {
		c.Accumulate(o.name, shard, float64(o.rows)*math.Pow(3, float64(shard))+0.1)
	}
	o.rows = 0
	c.Count("shards", 1)
	return o.bomb.tick()
}

// addQueue adds a queue whose result depends on the order of its rows.
func addQueue(b *engine.Builder, i int, s step, in []*engine.Dataset, bomb *bomb) *engine.Dataset {
	first, second := comqueue.PartitionedRows("first"), comqueue.PartitionedRows("second")
	side := comqueue.BroadcastRows("side")
	sums := shared.Scratch[[]float64]("sums")
	state := shared.Replicated("state", shared.Float64s())
	two, broadcast := s.arg%2 == 1, s.arg%3 == 0
	q := comqueue.New(b, fmt.Sprintf("queue%d", i)).InitWithPartitionedData(first, in[0])
	if two {
		q = q.InitWithPartitionedData(second, in[1])
	}
	if broadcast {
		q = q.InitWithBroadcastData(side, in[2])
	}
	q = q.Begin(func(ctx *comqueue.ComContext) error {
		state.Put(ctx, []float64{1, 0})
		return bomb.tick()
	}).Init(func(ctx *comqueue.ComContext) error {
		sums.Put(ctx, make([]float64, 2))
		return bomb.tick()
	}).Add(comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []float64) error {
		at := 1.0
		for _, v := range first.Get(ctx, shard).Floats("value") {
			out[0] += v * at * state.Get(ctx)[0]
			at += 0.3
		}
		if two {
			for _, v := range second.Get(ctx, shard).Floats("value") {
				out[1] += v / at
				at += 0.7
			}
		}
		if broadcast {
			for _, v := range side.Get(ctx).Floats("value") {
				out[1] += v * at
			}
		}
		return bomb.tick()
	})).Add(comqueue.AllReduce(sums)).Do(func(ctx *comqueue.ComContext) error {
		v, s := state.Get(ctx), sums.Get(ctx)
		v[0], v[1] = math.Mod(v[0]+s[0], 8), math.Mod(v[1]+s[1], 16)
		if ctx.TaskID() == 0 {
			ctx.Report("state", v[0])
		}
		return bomb.tick()
	}).SetMaxIter(3)
	return q.CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]cell, error) {
		v := state.Get(ctx)
		return []cell{{Key: int64(shard), Value: v[0]}, {Key: int64(shard % 3), Value: v[1]}}, bomb.tick()
	})).Exec()
}

// run runs the graph. It returns the rows of the collected datasets and the counts of all operators.
func (g keptGraph) run(t *testing.T, bomb *bomb, options ...engine.Option) (string, error) {
	job := engine.Define("kept", func(b *engine.Builder, _ struct{}) error {
		var made []*engine.Dataset
		for i, s := range g.steps {
			in := pick(made, s.in)
			var d *engine.Dataset
			switch s.op {
			case queueOp:
				d = addQueue(b, i, s, in, bomb)
			case tallyOp:
				how := []engine.Port{{From: in[0]}, {From: in[0], Partitioner: engine.Hash, Keys: []string{"key"}}, {From: in[0], Partitioner: engine.Rebalance}}[s.arg%3]
				d = b.Add(engine.Spec{Op: "Tally", Schema: in[0].Schema(), Inputs: []engine.Port{how}, Operator: func() engine.Operator {
					return &tally{bomb: bomb, name: fmt.Sprint("tally ", i)}
				}})
			default:
				d = graphOps[s.op].build(b, s, in)
			}
			made = append(made, d)
			if !g.collected[i] {
				continue
			}
			engine.Collect(operators.MapPartition(d, func(s *operators.Shard[cell], emit func(located)) error {
				for c := range s.Rows() {
					emit(located{int64(s.Index), c.String()})
				}
				return nil
			}), fmt.Sprint(i))
		}
		return nil
	})
	options = append([]engine.Option{engine.Shards(graphShards), engine.Seed(graphSeed), engine.Allocator(batchtest.Allocator(t)), engine.SpillDir(t.TempDir())}, options...)
	result, err := engine.Run(t.Context(), job, struct{}{}, options...)
	if err != nil {
		return "", err
	}
	defer result.Release()
	var text strings.Builder
	for i := range g.steps {
		if !g.collected[i] {
			continue
		}
		rows, err := engine.Rows[located](result, fmt.Sprint(i))
		require.NoError(t, err)
		for _, r := range rows {
			fmt.Fprintf(&text, "%d: %d: %s\n", i, r.Shard, r.Cell)
		}
	}
	for _, a := range result.Report.Accumulators {
		fmt.Fprintf(&text, "%s %x\n", a.Name, math.Float64bits(a.Value))
	}
	for _, q := range result.Report.Queues {
		fmt.Fprintln(&text, q.Name, q.Supersteps, q.Stopped)
		for _, s := range q.Series {
			fmt.Fprintf(&text, "%s %x\n", s.Name, s.Values)
		}
	}
	return text.String() + operatorCounts(result), nil
}

// operatorCounts returns what all operators have counted, over all of their subtasks. It leaves out
// queues whose rows all subtasks of another queue read: such a queue counts nothing if it is left out
// because its rows are kept.
func operatorCounts(result *engine.Result) string {
	leftOut := make(map[string]bool)
	for _, e := range result.Plan.Edges {
		leftOut[result.Plan.Vertices[e.From].Queue] = leftOut[result.Plan.Vertices[e.From].Queue] || e.Role == plan.Side
	}
	counts := make(map[string]int64)
	for _, v := range result.Report.Vertices {
		if queue := result.Plan.Vertices[v.ID].Queue; queue != "" && leftOut[queue] {
			continue
		}
		for _, s := range v.Subtasks {
			counts[fmt.Sprintf("vertex %d in", v.ID)] += s.RowsIn
			counts[fmt.Sprintf("vertex %d out", v.ID)] += s.RowsOut
			for _, o := range s.Operators {
				counts[fmt.Sprintf("node %d in", o.Node)] += o.RowsIn
				counts[fmt.Sprintf("node %d out", o.Node)] += o.RowsOut
				for _, c := range o.Counters {
					counts[fmt.Sprintf("node %d %s", o.Node, c.Name)] += c.Value
				}
			}
		}
	}
	var lines []string
	for name, n := range counts {
		lines = append(lines, fmt.Sprintf("%s: %d\n", name, n))
	}
	sort.Strings(lines)
	return strings.Join(lines, "")
}

// TestRunsThatGoOn requires that a run of a random graph has the results of an undisturbed run, if runs
// before it have failed at random moments and its processes have kept something of them. The runs have
// random parallelisms and numbers of workers, and some processes are replaced.
func TestRunsThatGoOn(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		g := drawKeptGraph(rt)
		var never bomb
		_, err := g.run(t, &never, engine.Parallelism(1))
		require.NoError(t, err)
		const most = 5
		kept := make([]*task.Retained, most)
		for i := range kept {
			kept[i] = task.NewRetained()
		}
		defer func() {
			for _, k := range kept {
				require.NoError(t, k.Close())
			}
		}()
		ticks := int(never.ticks.Load())
		p, workers := rapid.IntRange(1, most).Draw(rt, "p"), 0
		history := ""
		var saving []engine.Option
		if rapid.Bool().Draw(rt, "saved") {
			saving = []engine.Option{engine.CheckpointDir(t.TempDir()), engine.CheckpointSupersteps(1), engine.Resume(true)}
		}
		for n := rapid.IntRange(1, 5).Draw(rt, "failures"); n >= 0; n-- {
			if rapid.IntRange(0, 2).Draw(rt, "other") == 0 {
				p = rapid.IntRange(1, graphShards).Draw(rt, "p")
			}
			workers = rapid.IntRange(1, min(p, most)).Draw(rt, "workers")
			var b bomb
			if n > 0 {
				b.left.Store(int64(rapid.IntRange(1, ticks+ticks/4+1).Draw(rt, "bomb")))
			}
			options := []engine.Option{engine.Parallelism(p), engine.Workers(workers), engine.Retaining(kept), engine.BatchRows(rapid.SampledFrom([]int{1, 3, 1024}).Draw(rt, "batch"))}
			if rapid.IntRange(0, 3).Draw(rt, "small") == 0 {
				options = append(options, engine.MemoryBudget(int64(workers)<<14))
			}
			if rapid.IntRange(0, 3).Draw(rt, "checked") == 0 {
				options = append(options, engine.CheckState(true), engine.CheckBroadcasts(true))
			}
			got, err := g.run(t, &b, append(options, saving...)...)
			history += fmt.Sprintf("p %d, %d workers: %v\n", p, workers, err)
			if err == nil {
				want, err := g.run(t, &bomb{}, engine.Parallelism(p)) // the vertices depend on the parallelism
				require.NoError(t, err)
				if want == got {
					continue
				}
				rt.Fatalf("%v%sis\n%s\nwant\n%s", g, history, got, want)
			}
			if !errors.Is(err, errBomb) {
				rt.Fatalf("%v%s", g, history)
			}
			for i := range kept {
				if rapid.IntRange(0, 4).Draw(rt, "lost") == 0 {
					require.NoError(t, kept[i].Close())
					kept[i] = task.NewRetained()
				}
			}
			if rapid.IntRange(0, 3).Draw(rt, "swap") == 0 {
				i, j := rapid.IntRange(0, most-1).Draw(rt, "i"), rapid.IntRange(0, most-1).Draw(rt, "j")
				kept[i], kept[j] = kept[j], kept[i]
			}
		}
	})
}
