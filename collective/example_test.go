package collective_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/shared"
)

// Four goroutines add up their gradients, and let rank 0 say whether to go on.
func Example() {
	group := collective.NewLocalGroup(4)
	var wg sync.WaitGroup
	for i := range group.Size() {
		wg.Go(func() {
			c := group.Rank(i)
			defer c.Close(nil)
			ctx := context.Background()

			gradient := []float64{float64(i), 1}
			err := collective.AllReduce(c, &collective.Reduction[float64]{
				Name:  "gradient",
				Op:    collective.Sum[float64](),
				Whole: gradient,
				Out:   gradient, // in place
			})
			if err != nil {
				fmt.Println(err)
				return
			}
			stop, err := c.BroadcastBool(ctx, 0, gradient[0] < 10)
			if err != nil {
				fmt.Println(err)
				return
			}
			if i == 3 {
				fmt.Println(gradient, stop)
			}
		})
	}
	wg.Wait()
	// Output: [6 4] true
}

// The sums of eight shards do not depend on how many ranks hold them, to the last
// bit, though no two of these numbers can be added without rounding.
func ExampleReduction() {
	sum := func(ranks int) float64 {
		const shards = 8
		group := collective.NewLocalGroup(ranks)
		results := make([][]float64, ranks)
		var wg sync.WaitGroup
		for i := range ranks {
			wg.Go(func() {
				c := group.Rank(i)
				defer c.Close(nil)
				own := shared.Split(shards, ranks, i)
				req := &collective.Reduction[float64]{
					Name: "loss", Op: collective.Sum[float64](), Shards: shards, Out: make([]float64, 1),
				}
				for s := own.Lo; s < own.Hi; s++ {
					req.Forest = append(req.Forest, shared.Entry[[]float64]{
						Node: shared.Leaf(s), Value: []float64{1e16 / float64(3*s+1)},
					})
				}
				if err := collective.AllReduce(c, req); err != nil {
					fmt.Println(err)
				}
				results[i] = req.Out
			})
		}
		wg.Wait()
		return results[0][0]
	}
	fmt.Println(sum(1) == sum(2), sum(2) == sum(3), sum(3) == sum(8))
	// Output: true true true
}

// Ranks that lose step with each other learn so, instead of waiting for ever.
func ExampleMismatchError() {
	group := collective.NewLocalGroup(2)
	done := make(chan error)
	go func() { done <- group.Rank(1).Barrier(context.Background()) }()
	x := make([]float32, 4096)
	err := collective.AllReduce(group.Rank(0), &collective.Reduction[float32]{
		Name: "centroids", Op: collective.Sum[float32](), Whole: x, Out: x,
	})
	var mismatch *collective.MismatchError
	fmt.Println(errors.As(err, &mismatch), err == <-done)
	// Output: true true
}

// A program is data that can be read.
