package collective

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// scatterOn runs a reduction with blocks on all ranks and returns the concatenated blocks.
func scatterOn(t *testing.T, p int, of ends, request func(r int) *Reduction[float64]) []float64 {
	t.Helper()
	outs, errs := make([][]float64, p), make(chan error, p)
	for r := range p {
		go func() {
			req := request(r)
			req.Out = hostile(9, req.Blocks[r])
			outs[r] = req.Out
			errs <- AllReduce(of(r), req)
		}()
	}
	for range p {
		require.NoError(t, <-errs)
	}
	var all []float64
	for _, out := range outs {
		all = append(all, out...)
	}
	return all
}

// TestBlocksAreThoseOfTheTree requires that reductions with blocks, some of which are empty,
// give the results of the reference trees. The reductions run in memory and among processes,
// are folded by one rank or by all ranks, send or omit zeros, and have forests or whole buffers
// as input.
func TestBlocksAreThoseOfTheTree(t *testing.T) {
	const n, shards = 1500, 16
	for name, hosts := range placements {
		p := sizeOf(hosts)
		blocks, left := make([]int, p), n
		for r := range p - 1 {
			blocks[r] = min(left, (r*5+3)%4*n/p)
			left -= blocks[r]
		}
		blocks[p-1] = left
		groups := tcpGroups(t, p, hosts)
		local, serial := NewLocalGroup(p), NewLocalGroup(p)
		local.serialLimit, local.packFrom = 0, 1000
		for _, g := range groups {
			g.local.packFrom = 1000
		}
		where := map[string]ends{"memory": local.Rank, "one for all": serial.Rank, "TCP": endsOf(groups)}
		for _, one := range []int{1, 2, 40, 1 << 20} {
			leaves, whole := make([][]float64, shards), make([][]float64, p)
			for r := range p {
				for _, e := range sparseForest(p, r, shards, n, one) {
					leaves[e.Node.Index] = e.Value
				}
				whole[r] = rare(uint64(r), n, one)
			}
			for _, op := range []Op[float64]{Sum[float64](), lean()} {
				for at, of := range where {
					for _, sparse := range []bool{false, true} {
						got := scatterOn(t, p, of, func(r int) *Reduction[float64] {
							return &Reduction[float64]{Name: "x", Op: op, Shards: shards, Forest: sparseForest(p, r, shards, n, one), Blocks: blocks, Sparse: sparse}
						})
						require.Equal(t, bitsOf(treeOverShards(op, leaves)), bitsOf(got), "%s, %s, one of %d, %s, sparse %v", at, name, one, op.Name(), sparse)
						got = scatterOn(t, p, of, func(r int) *Reduction[float64] {
							return &Reduction[float64]{Name: "y", Op: op, Whole: whole[r], Blocks: blocks, Sparse: sparse}
						})
						require.Equal(t, bitsOf(treeOverRanks(op, whole)), bitsOf(got), "%s, %s, one of %d, %s, sparse %v, whole", at, name, one, op.Name(), sparse)
					}
				}
			}
		}
		for at, of := range where {
			nobody := scatterOn(t, p, of, func(int) *Reduction[float64] {
				return &Reduction[float64]{Name: "z", Op: Max[float64](), Shards: shards, Blocks: blocks}
			})
			require.Equal(t, math.Inf(-1), nobody[n-1], "without any input the result must be the identity: %s", at)
		}
		closeAll(t, groups)
	}
}

// TestBytesOfBlocks requires that a rank sends only its contributions to the blocks of other
// ranks, which are half of the bytes of an AllReduce. If only few elements are not 0, the rank
// must send only these elements. Processes also send the numbers of these elements.
func TestBytesOfBlocks(t *testing.T) {
	const p, n = 4, packFrom
	blocks := []int{n / 2, 0, n / 4, n / 4}
	few := func(r int) []float64 { // in each quarter, 8 elements are not 0
		x := make([]float64, n)
		for i := range 4 * 8 {
			x[i*n/32+1] = float64(r + 1)
		}
		return x
	}
	groups := tcpGroups(t, p, nil)
	counts := int64(p * (p - 1) * 8 * p)
	for at, of := range map[string]ends{"memory": NewLocalGroup(p).Rank, "TCP": endsOf(groups)} {
		for _, c := range []struct {
			in     func(r int) []float64
			want   int64
			sparse bool
		}{
			{func(r int) []float64 { return hostile(uint64(r), n) }, (p - 1) * n * 8, false},
			{few, (p - 1) * 4 * 8 * (8 + 4), true},
		} {
			var before, sent, sparse int64
			for r := range p {
				before += of(r).Stats().Bytes
				sparse -= of(r).Stats().Sparse
			}
			scatterOn(t, p, of, func(r int) *Reduction[float64] {
				return &Reduction[float64]{Name: "x", Op: Sum[float64](), Whole: c.in(r), Blocks: blocks, Sparse: true}
			})
			for r := range p {
				sent += of(r).Stats().Bytes
				sparse += of(r).Stats().Sparse
			}
			want := c.want
			if at == "TCP" {
				want += counts
			}
			require.Equal(t, want, sent-before, at)
			require.Equal(t, c.sparse, sparse == p, at)
		}
	}
	closeAll(t, groups)
}

// TestInvalidBlocks requires that errors about invalid blocks describe the problem.
func TestInvalidBlocks(t *testing.T) {
	for text, change := range map[string]func(rank int, r *Reduction[float64]){
		`ReduceScatter "x" has 1 blocks for 2 ranks`:                             func(_ int, r *Reduction[float64]) { r.Blocks = []int{10} },
		`ReduceScatter "x" has a block of -1 elements for rank 1, after 5`:       func(_ int, r *Reduction[float64]) { r.Blocks, r.Out = []int{5, -1}, r.Out[:5] },
		`ReduceScatter "x" has room for 5 elements where its block has 4`:        func(_ int, r *Reduction[float64]) { r.Blocks = []int{4, 4} },
		`ReduceScatter "x" is to be done by ring`:                                func(_ int, r *Reduction[float64]) { r.Algorithm = "ring" },
		`AllReduce "x" brings 10 elements but has room for 11`:                   func(k int, r *Reduction[float64]) { r.Blocks = []int{5, 6}; r.Out = make([]float64, 5+k) },
		fmt.Sprintf(`ReduceScatter "x" has a block of %d elements`, math.MaxInt): func(_ int, r *Reduction[float64]) { r.Blocks = []int{5, math.MaxInt} },
		`ReduceScatter "x" #1 (10 float64, sum, whole buffers, blocks of lengths `: func(k int, r *Reduction[float64]) {
			r.Blocks, r.Out = []int{4 + k, 6 - k}, r.Out[:4+k]
		},
	} {
		errs := onRanks(NewLocalGroup(2), func(c *Comm) error {
			r := &Reduction[float64]{Name: "x", Op: Sum[float64](), Whole: make([]float64, 10), Out: make([]float64, 5), Blocks: []int{5, 5}}
			change(c.Rank(), r)
			return AllReduce(c, r)
		})
		require.ErrorContains(t, errs[0], text)
	}
}

// TestExchangesThatDoNotFit requires that both ranks get an error if one rank sends more or
// fewer elements than the other rank expects.
func TestExchangesThatDoNotFit(t *testing.T) {
	exchange := func(more int) []error {
		return onRanks(NewLocalGroup(2), func(c *Comm) error {
			send, recv := []int{1, 3}, []int{1, 2}
			if c.Rank() == 1 {
				send, recv = []int{2, 1}, []int{3 - more, 1}
			}
			return AllToAllV(c, make([]int64, send[0]+send[1]), make([]int64, recv[0]+recv[1]), send, recv, WithName("rows"))
		})
	}
	for _, err := range exchange(0) {
		require.NoError(t, err)
	}
	for _, err := range exchange(1) {
		require.ErrorContains(t, err, `AllToAllV "rows" #1 (int64) sending 3 elements to rank 1`)
		require.ErrorContains(t, err, `AllToAllV "rows" #1 (int64) expecting 2 elements from rank 0`)
	}
}
