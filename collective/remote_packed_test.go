package collective

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// rare returns n elements. An element is set (not +0) with probability 1/one. Some of the set
// elements are −0, NaN, infinity or the smallest number, and the other set elements are hostile
// data. All NaNs have the same payload, since which of two NaNs determines the payload of their
// sum depends on the compiler.
func rare(seed uint64, n, one int) []float64 {
	r := rand.New(rand.NewPCG(seed, 7))
	x := hostile(seed, n)
	odd := []float64{math.Copysign(0, -1), math.NaN(), math.Inf(1), 5e-324}
	for i := range x {
		switch {
		case r.IntN(one) != 0:
			x[i] = 0
		case r.IntN(50) == 0:
			x[i] = odd[r.IntN(len(odd))]
		}
	}
	return x
}

// packed returns piece x in the packed form, and the number of its set elements.
func packed[T Number](x []T) (bytes []byte, k int) {
	_, size := typeOf[T]()
	k = setOf(x)
	room := make([]uint64, packedBytes(k, len(x), size)/8+1)
	for i := range room {
		room[i] = 0xdeadbeefdeadbeef // so that the test detects bytes that packPiece does not write
	}
	n := packPiece(wordBytes(room), x, k)
	return wordBytes(room)[:n], k
}

func testPacking[T Number](t *testing.T) {
	_, size := typeOf[T]()
	for _, n := range []int{0, 1, 7, 31, 32, 33, 64, 100, 1000, 4099} {
		for _, one := range []int{1, 2, 5, 30, 33, 100, 1 << 20} {
			odd := rare(uint64(n), n, one)
			if n > 40 {
				odd[35] = math.Float64frombits(0xfff8000000000abc)
			}
			x := convert[T](odd)
			bytes, k := packed(x)
			set := 0
			for _, b := range viewsOf(x) {
				if b != 0 {
					set++
				}
			}
			require.Equal(t, set, k)
			want := 0 // the size of the smallest form
			if k > 0 {
				values := (k*size + 7) / 8 * 8
				want = min((n*size+7)/8*8, (4*k+7)/8*8+values, ((n+31)/32*4+7)/8*8+values)
			}
			require.Len(t, bytes, want, "%d of %d", k, n)
			got := convert[T](hostile(1, n))
			require.NoError(t, unpackPiece(got, bytes, k))
			require.Equal(t, bitsOf(x), bitsOf(got), "%d of %d", k, n)
		}
	}
}

// viewsOf returns the bits of the elements as unsigned integers, so that only +0 gives 0.
func viewsOf[T Number](x []T) []uint64 {
	v := make([]uint64, len(x))
	for i, e := range x {
		switch e := any(e).(type) {
		case float64:
			v[i] = math.Float64bits(e)
		case float32:
			v[i] = uint64(math.Float32bits(e))
		default:
			if x[i] != 0 {
				v[i] = 1
			}
		}
	}
	return v
}

func TestPacking(t *testing.T) {
	testPacking[float64](t)
	testPacking[float32](t)
	testPacking[int64](t)
	testPacking[int32](t)
	testPacking[uint8](t)
}

// FuzzUnpack requires that unpackPiece, with arbitrary bytes, either returns an error or fills
// the piece, and never writes beyond it.
func FuzzUnpack(f *testing.F) {
	for _, one := range []int{1, 3, 60} {
		bytes, k := packed(rare(3, 70, one))
		f.Add(bytes, 70, k)
	}
	f.Fuzz(func(t *testing.T, src []byte, n, k int) {
		if n < 0 || n > 1<<12 || k < absentPiece || k > n {
			return
		}
		room := make([]uint64, packedBytes(k, n, 8)/8)
		copy(wordBytes(room), src)
		guarded := hostile(2, n+1)
		last := guarded[n]
		err := unpackPiece(guarded[:n], wordBytes(room), k)
		require.Equal(t, last, guarded[n])
		if err == nil && setOf(guarded[:n]) == k {
			again, _ := packed(guarded[:n])
			back := make([]float64, n)
			require.NoError(t, unpackPiece(back, again, k))
			require.Equal(t, bitsOf(guarded[:n]), bitsOf(back))
		}
	})
}

// TestUnpackRefuses requires that unpackPiece returns an error for a mask with a wrong number
// of set bits, for a mask with bits beyond the end of the piece, and for a position beyond the
// end of the piece.
func TestUnpackRefuses(t *testing.T) {
	x := make([]float64, 70)
	for i := range 40 {
		x[i] = 1
	}
	mask, k := packed(x)
	bad := make([]uint64, len(mask)/8)
	copy(wordBytes(bad), mask)
	wordBytes(bad)[0] ^= 1
	require.ErrorContains(t, unpackPiece(make([]float64, 70), wordBytes(bad), k), "mask")
	wordBytes(bad)[8] |= 0x80 // restores the number of bits, but with a bit beyond the 70 elements
	require.ErrorContains(t, unpackPiece(make([]float64, 70), wordBytes(bad), k), "mask")
	place, k := packed(append(make([]float64, 69), 5))
	copy(wordBytes(bad), place)
	wordBytes(bad)[0] = 70
	require.ErrorContains(t, unpackPiece(make([]float64, 70), wordBytes(bad[:len(place)/8]), k), "element 70 of 70")
}

// sparseForest returns the forest of rank r of p ranks over the given number of shards. The
// data is from rare. Some shards are empty.
func sparseForest(p, r, shards, n, one int) []sharding.Entry[[]float64] {
	forest := []sharding.Entry[[]float64]{}
	own := sharding.Split(shards, p, r)
	for s := own.Lo; s < own.Hi; s++ {
		if s%5 != 3 {
			forest = append(forest, sharding.Entry[[]float64]{Node: sharding.Leaf(s), Value: rare(uint64(100+s), n, one)})
		}
	}
	return forest
}

// TestSparseReductionsGiveTheBitsOfWholeOnes requires that reductions that may omit zeros give
// the results of the reference trees. The reductions run in memory and among processes, on data
// of several densities, and also with an operator that does not commute.
func TestSparseReductionsGiveTheBitsOfWholeOnes(t *testing.T) {
	const n, shards = 1500, 16
	for name, hosts := range placements {
		p := sizeOf(hosts)
		groups := tcpGroups(t, p, hosts)
		local := NewLocalGroup(p)
		local.serialLimit, local.packFrom = 0, 1000
		for _, g := range groups {
			g.local.packFrom = 1000
		}
		for _, one := range []int{1, 2, 40, 1 << 20} {
			leaves := make([][]float64, shards)
			for r := range p {
				for _, e := range sparseForest(p, r, shards, n, one) {
					leaves[e.Node.Index] = e.Value
				}
			}
			for _, op := range []Op[float64]{Sum[float64](), lean()} {
				want := bitsOf(treeOverShards(op, leaves))
				for where, of := range map[string]ends{"memory": local.Rank, "TCP": endsOf(groups)} {
					got := reduceOn(t, p, of, func(r int) *Reduction[float64] {
						return &Reduction[float64]{Name: "x", Op: op, Shards: shards, Forest: sparseForest(p, r, shards, n, one), Sparse: true}
					}, n)
					require.Equal(t, want, bitsOf(got), "%s, %s, one of %d, %s", where, name, one, op.Name())
				}
			}
			whole := make([][]float64, p)
			for r := range p {
				whole[r] = rare(uint64(r), n, one)
			}
			for where, of := range map[string]ends{"memory": local.Rank, "TCP": endsOf(groups)} {
				got := reduceOn(t, p, of, func(r int) *Reduction[float64] {
					x := append([]float64(nil), whole[r]...)
					return &Reduction[float64]{Name: "y", Op: Sum[float64](), Whole: x, Out: x, Sparse: true}
				}, n)
				require.Equal(t, bitsOf(treeOverRanks(Sum[float64](), whole)), bitsOf(got), "%s, %s, one of %d, whole", where, name, one)
			}
		}
		nobody := reduceOn(t, p, endsOf(groups), func(int) *Reduction[float64] {
			return &Reduction[float64]{Name: "z", Op: Max[float64](), Shards: shards, Sparse: true}
		}, n)
		require.Equal(t, math.Inf(-1), nobody[n-1], "without any input the result must be the identity")
		closeAll(t, groups)
	}
}

// reduceOn runs a reduction on all ranks, requires that all ranks get the same result, and
// returns that result.
func reduceOn(t *testing.T, p int, of ends, request func(r int) *Reduction[float64], n int) []float64 {
	t.Helper()
	outs, errs := make([][]float64, p), make(chan error, p)
	for r := range p {
		go func() {
			req := request(r)
			if req.Out == nil {
				req.Out = hostile(9, n)
			}
			outs[r] = req.Out
			errs <- AllReduce(of(r), req)
		}()
	}
	for range p {
		require.NoError(t, <-errs)
	}
	for r := range p {
		require.Equal(t, bitsOf(outs[0]), bitsOf(outs[r]), "ranks 0 and %d", r)
	}
	return outs[0]
}

// TestBytesOfSparseReductions requires that ranks send only the set elements if the inputs have
// few set elements, and that they send all elements if the inputs have many set elements.
// Processes also send the numbers of set elements.
func TestBytesOfSparseReductions(t *testing.T) {
	const p, n = 4, packFrom
	few := func(r int) []float64 { // in each part of n/p elements, 3 elements are set, the same on all ranks
		x := make([]float64, n)
		for i := range 3 * p {
			x[i*n/(3*p)+1] = float64(r + 1)
		}
		return x
	}
	// Each rank sends 3 parts. Each part has 3 elements and their positions. Then each rank
	// sends its result, which has 3 elements, to the 3 other ranks.
	part := int64(3*8 + 16)
	sent := func(of ends, in func(r int) []float64) (sum, sparse int64) {
		before := make([]Stats, p)
		for r := range p {
			before[r] = of(r).Stats()
		}
		reduceOn(t, p, of, func(r int) *Reduction[float64] {
			return &Reduction[float64]{Name: "x", Op: Sum[float64](), Whole: in(r), Sparse: true}
		}, n)
		for r := range p {
			sum += of(r).Stats().Bytes - before[r].Bytes
			sparse += of(r).Stats().Sparse - before[r].Sparse
		}
		return sum, sparse
	}
	groups := tcpGroups(t, p, nil)
	counts := int64(p * (p - 1) * 8 * (p + 1)) // bytes for the numbers of set elements of the parts and of the results
	for where, of := range map[string]ends{"memory": NewLocalGroup(p).Rank, "TCP": endsOf(groups)} {
		want := 2 * p * (p - 1) * part
		if where == "TCP" {
			want += counts
		}
		got, sparse := sent(of, few)
		require.Equal(t, want, got, where)
		require.Equal(t, int64(p), sparse)
		all := int64(2 * (p - 1) * n * 8)
		full, sparse := sent(of, func(r int) []float64 { return hostile(uint64(r), n) })
		require.InDelta(t, all, full, float64(counts), where)
		require.GreaterOrEqual(t, full, all)
		require.Zero(t, sparse)
		require.Less(t, got, full/500)
	}
	closeAll(t, groups)
}

// TestSparseIsAgreedOn requires an error if only one rank sets Sparse, and if a request sets
// both Sparse and Algorithm.
func TestSparseIsAgreedOn(t *testing.T) {
	for _, err := range onRanks(NewLocalGroup(2), func(c *Comm) error {
		x := make([]float64, 10)
		return AllReduce(c, &Reduction[float64]{Name: "x", Op: Sum[float64](), Whole: x, Out: x, Sparse: c.Rank() == 1})
	}) {
		var m *MismatchError
		require.ErrorAs(t, err, &m)
		require.Contains(t, fmt.Sprint(err), "whole buffers, sparse")
	}
	for _, err := range onRanks(NewLocalGroup(2), func(c *Comm) error {
		x := make([]float64, 10)
		return AllReduce(c, &Reduction[float64]{Name: "x", Op: Sum[float64](), Whole: x, Out: x, Sparse: true, Algorithm: "ring"})
	}) {
		require.ErrorContains(t, err, `"x" is to omit zeros and to be done by ring`)
	}
}

// TestHostileCountsAreRefused requires an error that names the process if a process announces a
// negative number of set elements, or more set elements than the part has elements.
func TestHostileCountsAreRefused(t *testing.T) {
	nodes := [][]sharding.Node{{sharding.Leaf(0)}, {sharding.Leaf(1)}}
	halves := []cut{{sharding.Range{Lo: 0, Hi: 50}, 0}, {sharding.Range{Lo: 50, Hi: 100}, 1}}
	packed, whole, err := volumes([]int64{9, 0, 3, absentPiece}, nodes, halves, 8)
	require.NoError(t, err)
	require.Equal(t, int64(0+8+3*8), packed, "absent parts, and parts that are folded by the process that has them, must not count")
	require.Equal(t, int64(2*50*8), whole)
	for _, bad := range []int64{51, -2, math.MaxInt64, math.MinInt64} {
		_, _, err := volumes([]int64{9, 0, bad, 1}, nodes, halves, 8)
		require.ErrorContains(t, err, fmt.Sprintf("process 1 brings %d elements of a part of 50", bad))
	}
}
