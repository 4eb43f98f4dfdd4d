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

// allReduceCounts has the buffer lengths of Gloo's test cases.
var allReduceCounts = []int{0, 1, 4, 64, 100, 1000, 10000}

// allReduceCase is one case of the table returned by allReduceTable. It can be executed for any
// element type.
type allReduceCase struct {
	algorithm string
	n         int
	inPlace   bool
	operator  int
	run       func(c *collective.Comm, x *allReduceCase) error
}

// String describes the case.
func (x *allReduceCase) String() string {
	return fmt.Sprintf("algorithm %q, n=%d, in place %t, operator %d", x.algorithm, x.n, x.inPlace, x.operator)
}

// allReduceOf executes a case with elements of type T on one rank, and checks the result.
func allReduceOf[T collective.Number](c *collective.Comm, x *allReduceCase) error {
	o := operators[T]()[x.operator]
	in := o.input(c.Rank(), x.n)
	out := in
	if !x.inPlace {
		out = make([]T, x.n)
	}
	err := collective.AllReduce(c, &collective.Reduction[T]{
		Name: "x", Op: o.op, Whole: in, Out: out, Algorithm: x.algorithm,
	})
	if err != nil {
		return err
	}
	if !x.inPlace {
		if err := same("the input, which must be left alone", o.input(c.Rank(), x.n), in); err != nil {
			return err
		}
	}
	return o.expect(c.Size(), 0, out)
}

// elementTypes has, for each element type, the function that executes a case with that type.
var elementTypes = []func(c *collective.Comm, x *allReduceCase) error{
	allReduceOf[float64], allReduceOf[float32], allReduceOf[int64], allReduceOf[int32], allReduceOf[uint8],
}

// allReduceTable returns the cases for p ranks, with every algorithm and count. The element
// type, the operator, and whether the operation is in place change from case to case. With the
// build tag soak, every type is tested both in place and not in place.
func allReduceTable(p int, counts []int, names []string) []allReduceCase {
	var table []allReduceCase
	k := p
	for _, name := range names {
		for _, n := range counts {
			if !testsize.Soak {
				table = append(table, allReduceCase{name, n, k%2 == 0, k / 3 % 4, elementTypes[k%5]})
				k++
				continue
			}
			for _, of := range elementTypes {
				table = append(table, allReduceCase{name, n, false, k % 4, of}, allReduceCase{name, n, true, (k + 1) % 4, of})
				k++
			}
		}
	}
	return table
}

// runAllReduces executes all operations of a table, one after another, on all ranks of a group.
func runAllReduces(t *testing.T, w *testGroup, table []allReduceCase) {
	t.Helper()
	w.run(t, func(c *collective.Comm) error {
		for i := range table {
			if err := table[i].run(c, &table[i]); err != nil {
				return fmt.Errorf("case %d, %v: %w", i, &table[i], err)
			}
		}
		return nil
	})
}

// TestAllReduceInMemory executes Gloo's table among ranks of one process. Cases without an
// algorithm use shared memory. Cases with an algorithm use messages.
func TestAllReduceInMemory(t *testing.T) {
	t.Parallel()
	sizes := testsize.Of(
		testsize.Raced([]int{1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 16, 32}, []int{1, 2, 3, 5, 6, 8, 12, 16}),
		[]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 24, 32},
	)
	for _, p := range sizes {
		w := inMemory(p)
		names := arranged(named(program.AllReduce, algorithm.Params{P: p}), p)
		counts := allReduceCounts
		if p > 16 { // for more than 16 ranks, Gloo's cases have fewer counts
			counts = []int{0, 1, 64, 1000}
		}
		runAllReduces(t, w, allReduceTable(p, counts, names))
		w.close(t)
	}
}

// TestAllReduceOverTCP executes the table over the loopback interface, with one rank and with
// several ranks per process.
func TestAllReduceOverTCP(t *testing.T) {
	t.Parallel()
	places := [][][]int{
		blockLayout(2, 2), cyclicLayout(3, 3), blockLayout(5, 2), cyclicLayout(6, 3), blockLayout(8, 8),
	}
	if testsize.Few {
		places = [][][]int{cyclicLayout(3, 3), cyclicLayout(6, 3)}
	}
	if testsize.Soak {
		for p := 1; p <= 8; p++ {
			places = append(places, blockLayout(p, p))
		}
		places = append(places, blockLayout(7, 3), cyclicLayout(8, 2), blockLayout(13, 4), cyclicLayout(16, 4))
	}
	for _, hosts := range places {
		p := len(flat(hosts))
		w := overTCP(t, p, hosts)
		names := named(program.AllReduce, algorithm.Params{P: p})
		runAllReduces(t, w, allReduceTable(p, allReduceCounts, names))
		w.close(t)
	}
}

// TestAllReducesOneAfterTheOther executes many small operations with varying lengths, types and
// algorithms on one group, as the training of a model does.
func TestAllReducesOneAfterTheOther(t *testing.T) {
	t.Parallel()
	rounds := 300
	if testsize.Soak {
		rounds = 10000
	}
	for _, w := range []*testGroup{inMemory(4), overTCP(t, 4, blockLayout(4, 4)), overTCP(t, 5, cyclicLayout(5, 2))} {
		names := named(program.AllReduce, algorithm.Params{P: w.p})
		table := make([]allReduceCase, rounds)
		for k := range table {
			name := ""
			if k%3 == 2 {
				name = names[k/3%len(names)]
			}
			table[k] = allReduceCase{name, k * k % 23, k%2 == 0, k % 4, elementTypes[k%5]}
		}
		runAllReduces(t, w, table)
		w.close(t)
	}
}

// TestAlgorithmsThatCannotServeSayWhy requests every algorithm with numbers of ranks that it
// does not support. Every rank must get an error that names the algorithm.
func TestAlgorithmsThatCannotServeSayWhy(t *testing.T) {
	t.Parallel()
	refused := 0
	for p := 1; p <= 16; p++ {
		for coll := range program.NumCollectives {
			for _, a := range algorithm.For(coll) {
				if a.Supports(algorithm.Params{P: p}) == nil || !hasSmallCall(coll) {
					continue
				}
				refused++
				w := inMemory(p)
				for r, err := range w.outcomes(func(c *collective.Comm) error { return smallCall(c, coll, a.Name) }) {
					require.ErrorContains(t, err, a.Name, "%v p=%d rank %d", coll, p, r)
				}
			}
		}
	}
	require.Positive(t, refused, "an algorithm must have refused a number of ranks, or the test proves nothing")
}

// hasSmallCall reports whether smallCall supports a collective.
func hasSmallCall(coll program.Collective) bool {
	return coll == program.AllReduce || coll == program.AllGather || coll == program.ReduceScatter || coll == program.AllToAll
}

// smallCall calls a collective with one element per rank and the named algorithm.
func smallCall(c *collective.Comm, coll program.Collective, name string) error {
	all, one := make([]int64, c.Size()), make([]int64, 1)
	switch coll {
	case program.AllReduce:
		return collective.AllReduce(c, &collective.Reduction[int64]{Name: "x", Op: collective.Sum[int64](), Whole: all, Out: all, Algorithm: name})
	case program.AllGather:
		return collective.AllGather(c, one, all, asked(name)...)
	case program.ReduceScatter:
		return collective.ReduceScatter(c, collective.Sum[int64](), all, one, asked(name)...)
	default:
		return collective.AllToAll(c, all, all, asked(name)...)
	}
}
