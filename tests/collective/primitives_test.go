package collective_test

import (
	"fmt"
	"testing"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// call describes one call of a collective. n is the length of a block, or of the whole buffer
// for broadcasts and reductions.
type call struct {
	coll    program.Collective
	uneven  bool
	inPlace bool
	root    int
	n       int
	kind    int // index of the operator
	by      string
}

// String describes the call.
func (x *call) String() string {
	v := ""
	if x.uneven {
		v = "V"
	}
	return fmt.Sprintf("%v%s by %q, root %d, n=%d, in place %t, operator %d", x.coll, v, x.by, x.root, x.n, x.inPlace, x.kind)
}

// counts returns the lengths and offsets of p blocks: n elements each or, if x.uneven is true,
// about n elements each, with some empty blocks.
func (x *call) counts(p int) (counts, offsets []int) {
	counts, offsets = make([]int, p), make([]int, p+1)
	for r := range counts {
		counts[r] = x.n
		if x.uneven {
			counts[r] = x.n * ((r*3 + 1) % 4)
		}
		offsets[r+1] = offsets[r] + counts[r]
	}
	return counts, offsets
}

// do executes the call on one rank for elements of type T, and checks the result.
func do[T collective.Number](c *collective.Comm, x *call) error {
	opts := asked(x.by)
	switch x.coll {
	case program.Broadcast:
		return doBroadcast[T](c, x, opts)
	case program.Gather, program.AllGather:
		return doGather[T](c, x, opts)
	case program.Scatter:
		return doScatter[T](c, x, opts)
	case program.AllToAll:
		return doAllToAll[T](c, x, opts)
	case program.Reduce, program.Scan, program.Exscan:
		return doReduce[T](c, x, opts)
	case program.ReduceScatter:
		return doReduceScatter[T](c, x, opts)
	case program.Barrier:
		return collective.Barrier(c, opts...)
	default:
		return fmt.Errorf("no such call: %v", x.coll)
	}
}

// doAny executes the call for elements of type number k mod 5.
func doAny(c *collective.Comm, x *call, k int) error {
	switch k % 5 {
	case 0:
		return do[float64](c, x)
	case 1:
		return do[int64](c, x)
	case 2:
		return do[float32](c, x)
	case 3:
		return do[int32](c, x)
	default:
		return do[uint8](c, x)
	}
}

func doBroadcast[T collective.Number](c *collective.Comm, x *call, opts []collective.Option) error {
	buf := values[T](c.Rank(), 0, x.n)
	if err := collective.Broadcast(c, x.root, buf, opts...); err != nil {
		return err
	}
	return same("the value of the root", values[T](x.root, 0, x.n), buf)
}

// doGather executes Gather or AllGather, which differ only in the ranks that get the result.
func doGather[T collective.Number](c *collective.Comm, x *call, opts []collective.Option) error {
	counts, offsets := x.counts(c.Size())
	r, total := c.Rank(), offsets[c.Size()]
	everywhere := x.coll == program.AllGather
	in := values[T](r, 0, counts[r])
	var out []T
	if everywhere || r == x.root {
		out = make([]T, total)
		if x.inPlace {
			in = out[offsets[r]:offsets[r+1]]
			copy(in, values[T](r, 0, counts[r]))
		}
	}
	var err error
	switch {
	case everywhere && x.uneven:
		err = collective.AllGatherV(c, in, out, counts, opts...)
	case everywhere:
		err = collective.AllGather(c, in, out, opts...)
	case x.uneven:
		err = collective.GatherV(c, x.root, in, out, counts, opts...)
	default:
		err = collective.Gather(c, x.root, in, out, opts...)
	}
	if err != nil || out == nil {
		return err
	}
	for s := range counts {
		if err := same(fmt.Sprint("the block of rank ", s), values[T](s, 0, counts[s]), out[offsets[s]:offsets[s+1]]); err != nil {
			return err
		}
	}
	return nil
}

func doScatter[T collective.Number](c *collective.Comm, x *call, opts []collective.Option) error {
	counts, offsets := x.counts(c.Size())
	r := c.Rank()
	out := make([]T, counts[r])
	var in []T
	if r == x.root {
		in = values[T](r, 0, offsets[c.Size()])
		if x.inPlace {
			out = in[offsets[r]:offsets[r+1]]
		}
	}
	var err error
	if x.uneven {
		err = collective.ScatterV(c, x.root, in, out, counts, opts...)
	} else {
		err = collective.Scatter(c, x.root, in, out, opts...)
	}
	if err != nil {
		return err
	}
	return same("the block", values[T](x.root, offsets[r], counts[r]), out)
}

func doAllToAll[T collective.Number](c *collective.Comm, x *call, opts []collective.Option) error {
	p, r := c.Size(), c.Rank()
	// length returns the number of elements that rank s sends to rank d. The block for rank 0
	// begins at element 0 of the input of s.
	length := func(s, d int) int {
		if x.uneven {
			return x.n * ((s + 2*d) % 3)
		}
		return x.n
	}
	send, recv, sent, got := make([]int, p), make([]int, p), 0, 0
	for i := range p {
		send[i], recv[i] = length(r, i), length(i, r)
		sent, got = sent+send[i], got+recv[i]
	}
	in := values[T](r, 0, sent)
	out := make([]T, got)
	var err error
	if x.uneven {
		err = collective.AllToAllV(c, in, out, send, recv, opts...)
	} else {
		if x.inPlace {
			out = in
		}
		err = collective.AllToAll(c, in, out, opts...)
	}
	if err != nil {
		return err
	}
	at := 0
	for s := range p {
		lo := 0
		for d := range r {
			lo += length(s, d)
		}
		if err := same(fmt.Sprint("the block of rank ", s), values[T](s, lo, recv[s]), out[at:at+recv[s]]); err != nil {
			return err
		}
		at += recv[s]
	}
	return nil
}

// doReduce executes Reduce, Scan or Exscan, which differ only in the ranks whose values are
// folded.
func doReduce[T collective.Number](c *collective.Comm, x *call, opts []collective.Option) error {
	o := operators[T]()[x.kind%4]
	r, ranks := c.Rank(), c.Size()
	in := o.input(r, x.n)
	out := make([]T, x.n)
	if x.inPlace {
		out = in
	}
	var err error
	switch x.coll {
	case program.Scan:
		ranks = r + 1
		err = collective.Scan(c, o.op, in, out, opts...)
	case program.Exscan:
		ranks = r
		err = collective.Exscan(c, o.op, in, out, opts...)
	default:
		if r != x.root {
			out = nil
		}
		if err = collective.Reduce(c, x.root, o.op, in, out, opts...); err == nil && r != x.root {
			return same("the input, which must be left alone", o.input(r, x.n), in)
		}
	}
	if err != nil {
		return err
	}
	if ranks == 0 {
		identities := make([]T, x.n)
		for i := range identities {
			identities[i] = o.op.Identity()
		}
		return same("the fold of nothing", identities, out)
	}
	return o.expect(ranks, 0, out)
}

func doReduceScatter[T collective.Number](c *collective.Comm, x *call, opts []collective.Option) error {
	o := operators[T]()[x.kind%4]
	counts, offsets := x.counts(c.Size())
	r := c.Rank()
	in := o.input(r, offsets[c.Size()])
	out := make([]T, counts[r])
	if x.inPlace {
		out = in[offsets[r]:offsets[r+1]]
	}
	var err error
	if x.uneven {
		err = collective.ReduceScatterV(c, o.op, in, out, counts, opts...)
	} else {
		err = collective.ReduceScatter(c, o.op, in, out, opts...)
	}
	if err != nil {
		return err
	}
	return o.expect(c.Size(), offsets[r], out)
}

// hasUneven reports whether a collective has a variant for blocks of different lengths.
func hasUneven(coll program.Collective) bool {
	switch coll {
	case program.Gather, program.AllGather, program.Scatter, program.ReduceScatter, program.AllToAll:
		return true
	}
	return false
}

// callsOf returns the calls of a collective among p ranks: every combination of root, algorithm
// and count, with blocks of equal and of unequal length, in place and not in place.
func callsOf(coll program.Collective, p int, counts []int) []call {
	roots := 1
	if coll.Rooted() {
		roots = p
	}
	forms := []bool{false}
	if hasUneven(coll) {
		forms = append(forms, true)
	}
	var calls []call
	for root := range roots {
		for _, name := range named(coll, algorithm.Params{P: p, Root: root}) {
			for k, n := range counts {
				for _, uneven := range forms {
					if uneven && name != "" && evenOnly(coll, name) {
						continue
					}
					x := call{coll: coll, uneven: uneven, root: root, n: n, kind: k + root, by: name}
					y := x
					y.inPlace = true
					calls = append(calls, x, y)
				}
			}
		}
	}
	return calls
}

// evenOnly reports whether an algorithm supports only blocks of equal lengths.
func evenOnly(coll program.Collective, name string) bool {
	a, err := algorithm.Find(coll, name)
	return err == nil && a.EvenOnly
}

// runCalls executes every n-th of the calls one after another on all ranks of a group. The
// element type changes from call to call. With the build tag soak, it executes every call for
// every type.
func runCalls(t *testing.T, w *testGroup, calls []call, n int) {
	t.Helper()
	w.run(t, func(c *collective.Comm) error {
		for k := range calls {
			x := &calls[k]
			if !sample(k+w.p, n) {
				continue
			}
			types := 1
			if testsize.Soak {
				types = 5
			}
			for i := range types {
				if err := doAny(c, x, k/n+i); err != nil {
					return fmt.Errorf("call %d, %v: %w", k, x, err)
				}
			}
		}
		return nil
	})
}
