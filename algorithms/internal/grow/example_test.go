package grow_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/grow"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
)

// The example grows one regression tree on six rows of one feature. The gradient of a row with
// label y is −y and its hessian is 1, so the value of a leaf is the mean of its labels.
func Example() {
	data := bins.Dense([]float64{1, 2, 3, 4, 5, 6}, 6, 1, bins.Options{})
	labels := []float64{10, 10, 10, 20, 20, 26}
	g := grow.New(grow.Params{MaxDepth: 2})
	begin := func(ctx *comqueue.ComContext) error {
		s, err := g.Open(ctx, data)
		if err != nil {
			return err
		}
		s.Begin(0, 1)
		for i, y := range labels {
			s.Target(0).Set(i, []float64{-y}, []float64{1})
		}
		return nil
	}
	show := func(ctx *comqueue.ComContext) error {
		for i, n := range g.State(ctx).Tree(0).Nodes {
			if n.Leaf() {
				fmt.Printf("node %d: %d rows, value %v\n", i, n.Count, n.Value)
			} else {
				fmt.Printf("node %d: below %v to node %d, else %d; gain %.1f\n", i, n.Threshold, n.Left, n.Right, n.Gain)
			}
		}
		return nil
	}
	job := engine.Anonymous(func(b *engine.Builder) error {
		q := comqueue.New(b, "growth").Do(begin)
		for _, stage := range g.Stages() {
			q.Add(stage)
		}
		none := func(*comqueue.ComContext) ([]struct{ X int64 }, error) { return nil, nil }
		engine.Collect(q.Do(show).SetMaxIter(1).CloseOnNode0(comqueue.Output(none)).Exec(), "rows")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(1))
	if err != nil {
		panic(err)
	}
	result.Release()
	// Output:
	// node 0: below 3.5 to node 1, else 2; gain 216.0
	// node 1: 3 rows, value 10
	// node 2: below 5.5 to node 3, else 4; gain 24.0
	// node 3: 2 rows, value 20
	// node 4: 1 rows, value 26
}
