package collective

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// odd returns the data of rank or shard r. Two in three elements are infinities of both signs,
// or NaNs of both signs and with several payloads. For each element, the values are distributed
// differently over the ranks.
func odd(r, n int) []float64 {
	values := []uint64{0x7ff8000000000000, 0xfff8000000000000, 0x7ff0000000000abc, 0xfffc00000000beef, 0x7ff0000000000000, 0xfff0000000000000}
	x := make([]float64, n)
	for i := range x {
		if x[i] = float64(i); (i+r)%3 != 2 {
			x[i] = math.Float64frombits(values[(i*5+r*(1+i/7))%len(values)])
		}
	}
	return x
}

// requireNaNs requires that x has at least one NaN, and that every NaN in x has the bits of
// math.NaN.
func requireNaNs(t *testing.T, x []float64, what ...any) {
	t.Helper()
	some := false
	for i, v := range x {
		if v != v {
			some = true
			require.Equal(t, uint64(0x7ff8000000000001), math.Float64bits(v), "%v, element %d", fmt.Sprint(what...), i)
		}
	}
	require.True(t, some, "%v: the result must have a NaN, or the test proves nothing", what)
}

// TestReductionsGiveOneNaN requires that every NaN in a result has the same bits, although the
// NaNs in the inputs differ. It runs every algorithm and operator, in shared memory and by
// messages, on whole buffers and forests, in groups of one rank and of several ranks.
func TestReductionsGiveOneNaN(t *testing.T) {
	const n = 41
	user := UserOp("plus", true, func(dst, src []float64) {
		for i, v := range src {
			dst[i] = v + dst[i]
		}
	})
	for p := 1; p <= 5; p++ {
		for _, few := range []int{0, 1 << 20} { // serialLimit: with 0 each rank folds a part, with 1<<20 one rank folds everything
			g := NewLocalGroup(p)
			if few == 0 {
				g.serialLimit = 0
			}
			for _, op := range []Op[float64]{Sum[float64](), Prod[float64](), Max[float64](), user} {
				for _, a := range append([]string{""}, namesFor(program.AllReduce, p)...) {
					for _, forest := range []bool{false, true} {
						shareAll(t, g, func(c *Comm, out []float64) error {
							req := &Reduction[float64]{Name: "x", Op: op, Out: out, Algorithm: a}
							if forest {
								for s := sharding.Split(8, p, c.Rank()).Lo; s < sharding.Split(8, p, c.Rank()).Hi; s++ {
									req.Forest = append(req.Forest, sharding.Entry[[]float64]{Node: sharding.Leaf(s), Value: odd(s, n)})
								}
								req.Shards = 8
							} else {
								req.Whole = odd(c.Rank(), n)
							}
							return AllReduce(c, req)
						}, n, func(int) bool { return true }, op.Name(), a, p, forest)
					}
				}
				// Only one shard has a value, so nothing is folded.
				for _, a := range append([]string{""}, namesFor(program.AllReduce, p)...) {
					outs := make([][]float64, p)
					g := NewLocalGroup(p)
					for r, err := range onRanks(g, func(c *Comm) error {
						out := make([]float64, n)
						req := &Reduction[float64]{Name: "x", Op: op, Out: out, Algorithm: a, Shards: 8}
						if own := sharding.Split(8, p, c.Rank()); own.Lo <= 3 && 3 < own.Hi {
							req.Forest = []sharding.Entry[[]float64]{{Node: sharding.Leaf(3), Value: odd(3, n)}}
						}
						outs[c.Rank()] = out
						return AllReduce(c, req)
					}) {
						what := fmt.Sprint(op.Name(), a, p, " rank ", r)
						if err != nil { // algorithms that take no forests return an error
							require.ErrorContains(t, err, "has no shard with a value", what)
							require.NotEmpty(t, a, what)
						} else {
							requireNaNs(t, outs[r], what)
						}
						g.Rank(r).Close(nil)
					}
				}
				for _, a := range append([]string{""}, namesFor(program.Reduce, p)...) {
					shareAll(t, g, func(c *Comm, out []float64) error {
						return Reduce(c, p-1, op, odd(c.Rank(), n), out, with(a)...)
					}, n, func(rank int) bool { return rank == p-1 }, "Reduce", op.Name(), a, p)
				}
				for _, a := range append([]string{""}, namesFor(program.Scan, p)...) {
					shareAll(t, g, func(c *Comm, out []float64) error {
						return Scan(c, op, odd(c.Rank(), n), out, with(a)...)
					}, n, func(int) bool { return true }, "Scan", op.Name(), a, p)
				}
				for _, a := range append([]string{""}, namesFor(program.ReduceScatter, p)...) {
					shareAll(t, g, func(c *Comm, out []float64) error {
						own := sharding.Split(n, p, c.Rank()).Len()
						return ReduceScatter(c, op, odd(c.Rank(), n), out[:own], with(a)...)
					}, n, func(int) bool { return true }, "ReduceScatter", op.Name(), a, p)
				}
			}
			for r := range p {
				g.Rank(r).Close(nil)
			}
		}
	}
}

// namesFor returns the names of the algorithms of coll that support p ranks.
func namesFor(coll program.Collective, p int) (names []string) {
	for _, a := range algorithm.For(coll) {
		if a.Supports(algorithm.Params{P: p}) == nil {
			names = append(names, a.Name)
		}
	}
	return names
}

func with(name string) []Option {
	if name == "" {
		return nil
	}
	return []Option{WithAlgorithm(name)}
}

// shareAll runs a collective on all ranks. It calls requireNaNs for the result of each rank for
// which has returns true.
func shareAll(t *testing.T, g *LocalGroup, run func(c *Comm, out []float64) error, n int, has func(rank int) bool, what ...any) {
	t.Helper()
	outs := make([][]float64, g.n)
	for _, err := range onRanks(g, func(c *Comm) error {
		outs[c.Rank()] = make([]float64, n)
		return run(c, outs[c.Rank()])
	}) {
		require.NoError(t, err, fmt.Sprint(what...))
	}
	for rank, out := range outs {
		if has(rank) {
			requireNaNs(t, out, append(what, " rank ", rank)...)
		}
	}
}
