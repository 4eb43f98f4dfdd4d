package collective_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Four goroutines add up their gradients. Rank 0 decides whether to go on.
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

// The sums of eight shards have the same bits however many ranks hold the shards, although
// every addition of these numbers rounds.
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
				own := sharding.Split(shards, ranks, i)
				req := &collective.Reduction[float64]{
					Name: "loss", Op: collective.Sum[float64](), Shards: shards, Out: make([]float64, 1),
				}
				for s := own.Lo; s < own.Hi; s++ {
					req.Forest = append(req.Forest, sharding.Entry[[]float64]{
						Node: sharding.Leaf(s), Value: []float64{1e16 / float64(3*s+1)},
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

// Ranks that make different calls get an error instead of waiting for ever.
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

// Three processes run an AllReduce over TCP. In this example they are goroutines of one
// program, and each goroutine has its own TCPGroup. A real process would get its rank and the
// addresses from its command line.
func ExampleNewTCPGroup() {
	dir, err := os.MkdirTemp("", "group")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	process := func(rank int) error {
		group, err := collective.NewTCPGroup(context.Background(), rank, collective.TCPConfig{
			Store: collective.FileStore(dir), // or Addresses: []string{"10.0.0.1:7000", ...}
			Size:  3,
		})
		if err != nil {
			return err
		}
		defer group.Close()
		c := group.Rank(rank)
		x := []float64{float64(rank), 1}
		err = collective.AllReduce(c, &collective.Reduction[float64]{
			Name: "gradient", Op: collective.Sum[float64](), Whole: x, Out: x,
		})
		if err != nil {
			return err
		}
		all := make([]int64, 3)
		if err := collective.AllGather(c, []int64{int64(rank * rank)}, all); err != nil {
			return err
		}
		if rank == 0 {
			fmt.Println(x, all)
		}
		return nil
	}
	var wg sync.WaitGroup
	for rank := range 3 {
		wg.Go(func() {
			if err := process(rank); err != nil {
				fmt.Println(err)
			}
		})
	}
	wg.Wait()
	// Output: [3 3] [0 1 4]
}

// Rank 1 scatters the rows of a table, each rank adds up its row, and all ranks gather the
// sums.
func ExampleScatter() {
	group := collective.NewLocalGroup(3)
	var wg sync.WaitGroup
	for i := range group.Size() {
		wg.Go(func() {
			c := group.Rank(i)
			var table []int64
			if i == 1 {
				table = []int64{1, 2, 30, 40, 500, 600}
			}
			row := make([]int64, 2)
			if err := collective.Scatter(c, 1, table, row); err != nil {
				fmt.Println(err)
			}
			sums := make([]int64, 3)
			if err := collective.AllGather(c, []int64{row[0] + row[1]}, sums); err != nil {
				fmt.Println(err)
			}
			if i == 2 {
				fmt.Println(sums)
			}
		})
	}
	wg.Wait()
	// Output: [3 70 1100]
}

// WithAlgorithm names the algorithm of a call, here a ring.
func ExampleWithAlgorithm() {
	group := collective.NewLocalGroup(4)
	var wg sync.WaitGroup
	for i := range group.Size() {
		wg.Go(func() {
			c := group.Rank(i)
			defer c.Close(nil)
			all := make([]int32, 4)
			if err := collective.AllGather(c, []int32{int32(i)}, all, collective.WithAlgorithm("ring")); err != nil {
				fmt.Println(err)
			}
			if i == 0 {
				fmt.Println(all, "by", c.Describe().Algorithm)
			}
		})
	}
	wg.Wait()
	// Output: [0 1 2 3] by ring
}

// Two ranks add their sparse gradients. One element of the sum is 0, so the result does not
// store it.
func ExampleAllReduceSparse() {
	mine := []collective.SparseVector[float64]{
		{Length: 1000, Index: []int32{3, 500}, Value: []float64{1, 2}},
		{Length: 1000, Index: []int32{3, 999}, Value: []float64{-1, 4}},
	}
	group := collective.NewLocalGroup(2)
	var wg sync.WaitGroup
	for i := range group.Size() {
		wg.Go(func() {
			sum, err := collective.AllReduceSparse(group.Rank(i), &collective.SparseReduction[float64]{
				Name: "gradient", Length: 1000, Value: &mine[i],
			})
			if err != nil {
				fmt.Println(err)
				return
			}
			if i == 0 {
				fmt.Println(sum.Index, sum.Value)
			}
		})
	}
	wg.Wait()
	// Output: [500 999] [2 4]
}
