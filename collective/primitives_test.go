package collective

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// ends returns the Comm of a rank of a group.
type ends func(rank int) *Comm

// primitiveCase is one call of one primitive on every rank, with the expected results.
type primitiveCase struct {
	coll program.Collective
	name string
	op   Op[int64]
	call func(c *Comm, opts ...Option) error
	got  func(rank int) []int64 // returns the output of a rank, or nil if the rank has no output
	want func(rank int) []int64
}

// primitiveCases returns a case for every primitive, with blocks of about n/p elements. The
// operator is chain, so different trees give different results.
func primitiveCases(p, root, n int, inPlace bool) []primitiveCase {
	value := func(rank, i int) int64 { return int64(rank*1_000_003 + i*7 + 1) }
	fresh := func(rank, n int) []int64 {
		x := make([]int64, n)
		for i := range x {
			x[i] = value(rank, i)
		}
		return x
	}
	op := chain()
	in, out := make([][]int64, p), make([][]int64, p)
	whole := func(rank int) []int64 { return fresh(rank, n) }
	fold := func(upTo int) []int64 {
		all := make([][]int64, upTo)
		for r := range all {
			all[r] = whole(r)
		}
		return treeOverRanks(op, all)
	}
	counts := make([]int, p)
	offs := make([]int, p+1)
	for r := range counts {
		counts[r] = (r*5 + n) % 7
		if n > 1000 {
			counts[r] += n / p
		}
		offs[r+1] = offs[r] + counts[r]
	}
	total := offs[p]
	rooted := func(v func(rank int) []int64) func(rank int) []int64 {
		return func(rank int) []int64 {
			if rank != root {
				return nil
			}
			return v(rank)
		}
	}
	got := func(rank int) []int64 { return out[rank] }
	concat := func(of func(rank int) []int64) []int64 {
		var x []int64
		for r := range p {
			x = append(x, of(r)...)
		}
		return x
	}
	block := func(r int) sharding.Range { return sharding.Split(n, p, r) }
	m := n / p
	ownBlock := func(c *Comm, out []int64, lo, hi int) []int64 {
		mine := fresh(c.Rank(), hi-lo)
		if inPlace && out != nil {
			copy(out[lo:hi], mine)
			return out[lo:hi]
		}
		return mine
	}
	outAt := func(c *Comm, root, n int) []int64 {
		if c.Rank() != root && root >= 0 {
			return nil
		}
		return make([]int64, n)
	}
	sendTo := func(s, d int) int { return (s*3 + d*5 + n) % 11 }
	return []primitiveCase{
		{coll: program.Broadcast, name: "Broadcast", call: func(c *Comm, o ...Option) error {
			out[c.Rank()] = whole(c.Rank())
			return Broadcast(c, root, out[c.Rank()], o...)
		}, got: got, want: func(int) []int64 { return whole(root) }},
		{coll: program.Reduce, name: "Reduce", op: op, call: func(c *Comm, o ...Option) error {
			r := c.Rank()
			in[r] = whole(r)
			out[r] = outAt(c, root, n)
			if inPlace && r == root {
				out[r] = in[r]
			}
			return Reduce(c, root, op, in[r], out[r], o...)
		}, got: got, want: rooted(func(int) []int64 { return fold(p) })},
		{coll: program.Gather, name: "Gather", call: func(c *Comm, o ...Option) error {
			r := c.Rank()
			out[r] = outAt(c, root, m*p)
			return Gather(c, root, ownBlock(c, out[r], r*m, r*m+m), out[r], o...)
		}, got: got, want: rooted(func(int) []int64 { return concat(func(r int) []int64 { return fresh(r, m) }) })},
		{coll: program.Gather, name: "GatherV", call: func(c *Comm, o ...Option) error {
			r := c.Rank()
			out[r] = outAt(c, root, total)
			return GatherV(c, root, ownBlock(c, out[r], offs[r], offs[r+1]), out[r], counts, o...)
		}, got: got, want: rooted(func(int) []int64 { return concat(func(r int) []int64 { return fresh(r, counts[r]) }) })},
		{coll: program.AllGather, name: "AllGather", call: func(c *Comm, o ...Option) error {
			r := c.Rank()
			out[r] = outAt(c, -1, m*p)
			return AllGather(c, ownBlock(c, out[r], r*m, r*m+m), out[r], o...)
		}, got: got, want: func(int) []int64 { return concat(func(r int) []int64 { return fresh(r, m) }) }},
		{coll: program.AllGather, name: "AllGatherV", call: func(c *Comm, o ...Option) error {
			r := c.Rank()
			out[r] = outAt(c, -1, total)
			return AllGatherV(c, ownBlock(c, out[r], offs[r], offs[r+1]), out[r], counts, o...)
		}, got: got, want: func(int) []int64 { return concat(func(r int) []int64 { return fresh(r, counts[r]) }) }},
		{coll: program.Scatter, name: "Scatter", call: func(c *Comm, o ...Option) error {
			r := c.Rank()
			out[r] = make([]int64, m)
			var in []int64
			if r == root {
				in = fresh(r, m*p)
				if inPlace {
					out[r] = in[r*m : r*m+m]
				}
			}
			return Scatter(c, root, in, out[r], o...)
		}, got: got, want: func(r int) []int64 { return fresh(root, m*p)[r*m : r*m+m] }},
		{coll: program.Scatter, name: "ScatterV", call: func(c *Comm, o ...Option) error {
			r := c.Rank()
			out[r] = make([]int64, counts[r])
			var in []int64
			if r == root {
				in = fresh(r, total)
			}
			return ScatterV(c, root, in, out[r], counts, o...)
		}, got: got, want: func(r int) []int64 { return fresh(root, total)[offs[r]:offs[r+1]] }},
		{coll: program.ReduceScatter, name: "ReduceScatter", op: op, call: func(c *Comm, o ...Option) error {
			r := c.Rank()
			in := whole(r)
			out[r] = make([]int64, block(r).Len())
			if inPlace {
				out[r] = in[block(r).Lo:block(r).Hi]
			}
			return ReduceScatter(c, op, in, out[r], o...)
		}, got: got, want: func(r int) []int64 { return fold(p)[block(r).Lo:block(r).Hi] }},
		{coll: program.ReduceScatter, name: "ReduceScatterV", op: op, call: func(c *Comm, o ...Option) error {
			r := c.Rank()
			out[r] = make([]int64, counts[r])
			return ReduceScatterV(c, op, fresh(r, total), out[r], counts, o...)
		}, got: got, want: func(r int) []int64 {
			all := make([][]int64, p)
			for s := range all {
				all[s] = fresh(s, total)
			}
			return treeOverRanks(op, all)[offs[r]:offs[r+1]]
		}},
		{coll: program.AllToAll, name: "AllToAll", call: func(c *Comm, o ...Option) error {
			r := c.Rank()
			in := fresh(r, m*p)
			out[r] = make([]int64, m*p)
			if inPlace {
				out[r] = in
			}
			return AllToAll(c, in, out[r], o...)
		}, got: got, want: func(r int) []int64 {
			return concat(func(s int) []int64 { return fresh(s, m*p)[r*m : r*m+m] })
		}},
		{coll: program.AllToAll, name: "AllToAllV", call: func(c *Comm, o ...Option) error {
			r := c.Rank()
			send, recv, ns, nr := make([]int, p), make([]int, p), 0, 0
			for i := range p {
				send[i], recv[i] = sendTo(r, i), sendTo(i, r)
				ns, nr = ns+send[i], nr+recv[i]
			}
			out[r] = make([]int64, nr)
			return AllToAllV(c, fresh(r, ns), out[r], send, recv, o...)
		}, got: got, want: func(r int) []int64 {
			return concat(func(s int) []int64 {
				at, all := 0, 0
				for d := range p {
					if d < r {
						at += sendTo(s, d)
					}
					all += sendTo(s, d)
				}
				return fresh(s, all)[at : at+sendTo(s, r)]
			})
		}},
		{coll: program.Scan, name: "Scan", op: op, call: func(c *Comm, o ...Option) error {
			r := c.Rank()
			in := whole(r)
			out[r] = make([]int64, n)
			if inPlace {
				out[r] = in
			}
			return Scan(c, op, in, out[r], o...)
		}, got: got, want: func(r int) []int64 { return fold(r + 1) }},
		{coll: program.Exscan, name: "Exscan", op: op, call: func(c *Comm, o ...Option) error {
			r := c.Rank()
			in := whole(r)
			out[r] = make([]int64, n)
			if inPlace {
				out[r] = in
			}
			return Exscan(c, op, in, out[r], o...)
		}, got: got, want: func(r int) []int64 {
			if r == 0 {
				return make([]int64, n)
			}
			return fold(r)
		}},
	}
}

// testPrimitive runs case x on a group of p ranks and requires that every rank has the expected
// output.
func testPrimitive(t *testing.T, what string, p int, of ends, x *primitiveCase, opts ...Option) {
	t.Helper()
	errs := make(chan error, p)
	for r := range p {
		go func() { errs <- x.call(of(r), opts...) }()
	}
	for range p {
		require.NoError(t, <-errs, what)
	}
	for r := range p {
		want, got := x.want(r), x.got(r)
		if !bytes.Equal(bytesOf(want), bytesOf(got)) {
			require.Equal(t, want, got, "%s: rank %d", what, r)
		}
	}
}

// TestPrimitivesInSharedMemory requires that every primitive in shared memory gives the results
// that primitiveCases defines.
func TestPrimitivesInSharedMemory(t *testing.T) {
	for _, p := range []int{1, 2, 3, 5, 8} {
		for _, n := range []int{0, 1, p - 1, p, p + 1, 2000} {
			for _, root := range []int{0, p - 1, p / 2} {
				for _, limit := range []int{0, serialLimit} {
					g := groupWithLimit(p, limit)
					for _, x := range primitiveCases(p, root, n, n%2 == 0) {
						what := fmt.Sprintf("%s p=%d n=%d root=%d limit=%d", x.name, p, n, root, limit)
						testPrimitive(t, what, p, g.Rank, &x)
					}
				}
			}
		}
	}
}

// TestEveryAlgorithmByName requires that every primitive gives the results that primitiveCases
// defines, by each of its algorithms, with messages in memory.
func TestEveryAlgorithmByName(t *testing.T) {
	for _, p := range []int{1, 2, 3, 6, 8} {
		for _, n := range []int{1, p, 1000} {
			root := p / 2
			g := NewLocalGroup(p)
			for _, x := range primitiveCases(p, root, n, true) {
				for _, a := range algorithm.For(x.coll) {
					pr := algorithm.Params{P: p, Root: root}
					uneven := x.name[len(x.name)-1] == 'V'
					notOurs := x.coll.Reduces() && (a.Canonical == nil || !a.Canonical(p))
					if a.Supports(pr) != nil || a.EvenOnly && uneven || notOurs {
						continue
					}
					what := fmt.Sprintf("%s by %s p=%d n=%d", x.name, a.Name, p, n)
					testPrimitive(t, what, p, g.Rank, &x, WithAlgorithm(a.Name))
				}
			}
			for r := range p {
				g.Rank(r).Close(nil)
			}
		}
	}
}
