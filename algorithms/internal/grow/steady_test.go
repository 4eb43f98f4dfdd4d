//go:build !race

// This test counts allocations. It is not built with the race detector, whose own allocations
// would distort the counts.

package grow

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// TestTreesAllocateThemselves requires that a superstep allocates only a few slices for each
// tree, and nothing for each row, node, level or histogram.
func TestTreesAllocateThemselves(t *testing.T) {
	const few, many = 5, 25
	for _, leafWise := range []bool{false, true} {
		for p := 1; p <= 2; p++ {
			rng := rand.New(rand.NewPCG(3, 5))
			params := Params{MaxDepth: 5, LeafWise: leafWise}
			if leafWise {
				params.MaxDepth, params.MaxLeaves = -1, 32
			}
			x, kinds := randomProblem(rng, 3000)
			x.trees, x.bag, x.large = 1, make([][]int32, 1), true
			for f := range x.features {
				x.features[f].Categorical = false
				x.features[f].Cuts = make([]float32, x.features[f].Bins)
			}
			x.g, x.h = x.g[:1], x.h[:1]
			l := x.layout(rng, kinds)
			nodes := 0
			mallocs := func(rounds int) float64 {
				g := New(params)
				g.packedFrom = 0
				begin := func(ctx *comqueue.ComContext) error {
					own := sharding.Split(len(x.bins), ctx.NumTask(), ctx.TaskID())
					s, ok := g.Lookup(ctx)
					if !ok {
						var err error
						if s, err = g.Open(ctx, x.data(l, own.Lo, own.Hi)); err != nil {
							return err
						}
					}
					x.begin(s, own)
					return nil
				}
				job := engine.Define("steady", func(b *engine.Builder, _ struct{}) error {
					q := comqueue.New(b, "growth").Do(begin)
					for _, stage := range g.Stages() {
						q.Add(stage)
					}
					q.Do(func(ctx *comqueue.ComContext) error {
						if ctx.TaskID() == 0 {
							nodes = len(g.State(ctx).Tree(0).Nodes)
						}
						return nil
					})
					engine.Collect(q.SetMaxIter(rounds).CloseOnNode0(comqueue.Output(func(*comqueue.ComContext) ([]struct{ X int64 }, error) { return nil, nil })).Exec(), "rows")
					return nil
				})
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				r, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(p), engine.Shards(8), engine.CheckBroadcasts(false))
				runtime.ReadMemStats(&after)
				require.NoError(t, err)
				r.Release()
				return float64(after.Mallocs - before.Mallocs)
			}
			least := func(rounds int) float64 {
				best := math.Inf(1)
				for range 3 {
					best = min(best, mallocs(rounds))
				}
				return best
			}
			each := (least(many) - least(few)) / (many - few) / float64(p)
			what := fmt.Sprintf("leaf-wise %v, %d subtasks: %.1f allocations for a tree of %d nodes", leafWise, p, each, nodes)
			t.Log(what)
			require.Greater(t, nodes, 40, what)
			require.Less(t, each, 8.0, what)
		}
	}
}
