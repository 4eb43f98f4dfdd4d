package collective_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// cancelling returns the input of a rank in MPICH's test case. For every ordered pair of ranks
// there is an element that is BIG on the first rank, −BIG on the second rank, and TINY on all
// other ranks. The order of the additions determines which TINY terms are lost by rounding. So
// the results of two ranks that add in different orders differ. The sequence of pairs is
// repeated, so that each pair occurs in every chunk of every algorithm.
func cancelling[T float32 | float64](p, rank, n int) []T {
	big := T(1e30)
	x := make([]T, n)
	for k := range x {
		i, j := 0, 0
		if p > 1 {
			pair := k % (p * (p - 1))
			i, j = pair/(p-1), pair%(p-1)
			if j >= i {
				j++
			}
		}
		switch rank {
		case i:
			x[k] = big
		case j:
			x[k] = -big
		default:
			x[k] = T(rank + 1)
		}
	}
	return x
}

// TestAllRanksGetTheSameBitsOfTermsThatCancel sums the input of cancelling with every
// algorithm. All ranks must get the same bits. Canonical algorithms must give the same bits as
// shared memory.
func TestAllRanksGetTheSameBitsOfTermsThatCancel(t *testing.T) {
	t.Parallel()
	sizes := []int{2, 3, 5, 8, 10, 12}
	if testsize.Soak {
		sizes = []int{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 32}
	} else if testsize.Few {
		sizes = []int{3, 8, 10}
	}
	orders := map[string]bool{}
	for _, p := range sizes {
		worlds := []*testGroup{inMemory(p)}
		if p == 3 || p == 10 {
			worlds = append(worlds, overTCP(t, p, cyclicLayout(p, 3)))
		}
		if testsize.Soak && p <= 10 {
			worlds = append(worlds, overTCP(t, p, nil), overTCP(t, p, blockLayout(p, 2)))
		}
		for _, w := range worlds {
			for _, n := range []int{p*p*(p-1) + 3, p} {
				cancel[float64](t, w, n, orders)
				cancel[float32](t, w, n, orders)
			}
			w.close(t)
		}
	}
	require.Greater(t, len(orders), 20, "the algorithms must give many different results: unless sums in other orders have other bits, the test proves nothing")
}

// cancel reduces the input of cancelling with every algorithm. It requires that all ranks have
// the same result, and that canonical algorithms have the same result as shared memory. It adds
// all results to seen.
func cancel[T float32 | float64](t *testing.T, w *testGroup, n int, seen map[string]bool) {
	t.Helper()
	p := w.p
	reduce := func(w *testGroup, name string) string {
		outs := make([][]T, p)
		w.run(t, func(c *collective.Comm) error {
			outs[c.Rank()] = make([]T, n)
			return collective.AllReduce(c, &collective.Reduction[T]{
				Name: "x", Op: collective.Sum[T](), Whole: cancelling[T](p, c.Rank(), n), Out: outs[c.Rank()], Algorithm: name,
			})
		})
		for r := range outs {
			require.Equal(t, bitsOf(outs[0]), bitsOf(outs[r]), "with %q, rank %d of %s must have the bits of rank 0", name, r, w.name)
		}
		return bitsOf(outs[0])
	}
	want := reduce(inMemory(p), "")
	for _, name := range arranged(named(program.AllReduce, algorithm.Params{P: p}), p) {
		got := reduce(w, name)
		seen[got] = true
		if canonical(name, p) {
			require.Equal(t, want, got, "%q in %s must have the bits of shared memory", name, w.name)
		}
	}
}

// canonical reports whether an algorithm is declared to fold in the canonical tree over p
// ranks.
func canonical(name string, p int) bool {
	if name == "" {
		return true
	}
	base, dims, err := algorithm.ParseName(name)
	if err != nil || dims != nil {
		return false // the declaration holds only for the dimensions that the algorithm chooses itself
	}
	a, err := algorithm.Find(program.AllReduce, base)
	return err == nil && a.Canonical != nil && a.Canonical(p)
}

// matrices returns the operator that multiplies 2×2 matrices of integers modulo 2^16. A matrix
// is packed into an int64. The operator is associative but not commutative.
func matrices() collective.Op[int64] {
	return collective.UserOp("matrix product", false, func(dst, src []int64) {
		for i := range dst {
			dst[i] = multiply(dst[i], src[i])
		}
	})
}

// multiply returns the product of two packed matrices.
func multiply(a, b int64) int64 {
	x, y := uint64(a), uint64(b)
	at := func(m uint64, row, col int) uint64 { return m >> (32*row + 16*col) & 0xffff }
	var z uint64
	for row := range 2 {
		for col := range 2 {
			z |= (at(x, row, 0)*at(y, 0, col) + at(x, row, 1)*at(y, 1, col)) & 0xffff << (32*row + 16*col)
		}
	}
	return int64(z)
}

// matrix returns element i of a rank's input, a packed matrix. The matrix is invertible, so
// that no product is zero.
func matrix(rank, i int) int64 {
	a, b := uint64(rank*3+i+1)&0xff, uint64(rank+2*i+1)&0xff
	return int64((1+a*b)&0xffff | a<<16 | b<<32 | 1<<48)
}

// products returns elements [lo, lo+n) of the products over ranks [0, p), in rank order.
func products(p, lo, n int) []int64 {
	x := make([]int64, n)
	for i := range x {
		x[i] = matrix(0, lo+i)
		for r := 1; r < p; r++ {
			x[i] = multiply(x[i], matrix(r, lo+i))
		}
	}
	return x
}

func TestTheProductOfMatricesIsWhatTheTestsNeed(t *testing.T) {
	t.Parallel()
	a, b, c := matrix(1, 2), matrix(5, 7), matrix(9, 1)
	require.Equal(t, multiply(multiply(a, b), c), multiply(a, multiply(b, c)))
	require.NotEqual(t, multiply(a, b), multiply(b, a))
	require.Equal(t, int64(7|10<<16|15<<32|22<<48), multiply(1|2<<16|3<<32|4<<48, 1|2<<16|3<<32|4<<48))
}

// ordered is a collective of matrices. call executes it on one rank and checks the result.
type ordered struct {
	coll program.Collective
	call func(c *collective.Comm, root, n int, by string) error
}

func matricesOf(rank, n int) []int64 {
	x := make([]int64, n)
	for i := range x {
		x[i] = matrix(rank, i)
	}
	return x
}

// orderedCalls returns the collectives that reduce.
func orderedCalls() []ordered {
	op := matrices()
	return []ordered{
		{program.AllReduce, func(c *collective.Comm, _, n int, by string) error {
			x := matricesOf(c.Rank(), n)
			err := collective.AllReduce(c, &collective.Reduction[int64]{Name: "x", Op: op, Whole: x, Out: x, Algorithm: by})
			if err != nil {
				return err
			}
			return same("the product", products(c.Size(), 0, n), x)
		}},
		{program.Reduce, func(c *collective.Comm, root, n int, by string) error {
			var out []int64
			if c.Rank() == root {
				out = make([]int64, n)
			}
			if err := collective.Reduce(c, root, op, matricesOf(c.Rank(), n), out, asked(by)...); err != nil || out == nil {
				return err
			}
			return same("the product", products(c.Size(), 0, n), out)
		}},
		{program.ReduceScatter, func(c *collective.Comm, _, n int, by string) error {
			out := make([]int64, n)
			if err := collective.ReduceScatter(c, op, matricesOf(c.Rank(), n*c.Size()), out, asked(by)...); err != nil {
				return err
			}
			return same("the block", products(c.Size(), c.Rank()*n, n), out)
		}},
		{program.Scan, func(c *collective.Comm, _, n int, by string) error {
			x := matricesOf(c.Rank(), n)
			if err := collective.Scan(c, op, x, x, asked(by)...); err != nil {
				return err
			}
			return same("the product", products(c.Rank()+1, 0, n), x)
		}},
		{program.Exscan, func(c *collective.Comm, _, n int, by string) error {
			x := matricesOf(c.Rank(), n)
			if err := collective.Exscan(c, op, x, x, asked(by)...); err != nil || c.Rank() == 0 {
				return err
			}
			return same("the product", products(c.Rank(), 0, n), x)
		}},
	}
}

// TestProductsThatDoNotCommuteKeepTheOrderOfRanks multiplies matrices with every algorithm and
// root. Algorithms that keep the order of ranks must give the product in rank order. All other
// algorithms must return on every rank an error that contains their name.
func TestProductsThatDoNotCommuteKeepTheOrderOfRanks(t *testing.T) {
	t.Parallel()
	sizes := testsize.Raced([]int{2, 3, 4, 7, 10}, []int{2, 4, 7})
	if testsize.Soak {
		sizes = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 24, 32}
	}
	refused := map[string]bool{}
	for _, p := range sizes {
		worlds := []*testGroup{inMemory(p)}
		if p == 4 || p == 10 {
			worlds = append(worlds, overTCP(t, p, cyclicLayout(p, 3)))
		}
		for _, x := range orderedCalls() {
			for _, w := range worlds {
				keepOrder(t, w, &x, refused)
			}
		}
		for _, w := range worlds {
			w.close(t)
		}
	}
	require.Contains(t, refused, "allreduce by ring")
}

// keepOrder tests one collective with all algorithms, and adds the algorithms that refuse it to
// refused.
func keepOrder(t *testing.T, w *testGroup, x *ordered, refused map[string]bool) {
	t.Helper()
	roots := 1
	if x.coll.Rooted() {
		roots = w.p
	}
	for root := range roots {
		for _, name := range named(x.coll, algorithm.Params{P: w.p, Root: root}) {
			if !keepsOrder(x.coll, name, w.p) {
				refused[fmt.Sprintf("%v by %s", x.coll, name)] = true
				for _, err := range inMemory(w.p).outcomes(func(c *collective.Comm) error { return x.call(c, root, 3, name) }) {
					require.ErrorContains(t, err, fmt.Sprintf("%s %v among %d ranks does not keep the order of ranks", name, x.coll, w.p))
					require.ErrorContains(t, err, `"matrix product"`)
				}
				continue
			}
			w.run(t, func(c *collective.Comm) error {
				for _, n := range []int{0, 1, 10, 100} {
					if err := x.call(c, root, n, name); err != nil {
						return fmt.Errorf("%v by %q of %d, root %d: %w", x.coll, name, n, root, err)
					}
				}
				return nil
			})
		}
	}
}

// keepsOrder reports whether an algorithm is declared to keep the order of ranks.
func keepsOrder(coll program.Collective, name string, p int) bool {
	if name == "" {
		return true
	}
	a, err := algorithm.Find(coll, name)
	return err == nil && a.RankOrder != nil && a.RankOrder(p)
}
