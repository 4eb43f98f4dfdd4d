package collective

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// outcomesOf runs a call on every rank of groups and returns the error of each rank.
func outcomesOf(groups []*TCPGroup, p int, call func(c *Comm) error) []error {
	of := endsOf(groups)
	errs := make([]error, p)
	done := make(chan int, p)
	for r := range p {
		go func() {
			errs[r] = call(of(r))
			done <- r
		}()
	}
	for range p {
		<-done
	}
	return errs
}

// abandon closes groups that have failed, and ignores their errors.
func abandon(groups []*TCPGroup) {
	done := make(chan bool, len(groups))
	for _, g := range groups {
		go func() {
			g.Close() // returns the error of the group, which the test has seen
			done <- true
		}()
	}
	for range groups {
		<-done
	}
}

// TestRanksThatDisagreeOverTCPAllLearnBothSides requires that all ranks get an error that
// describes both calls if the call of the last rank differs from the calls of the other ranks.
func TestRanksThatDisagreeOverTCPAllLearnBothSides(t *testing.T) {
	reduce := func(name string, n int, op Op[float32]) func(c *Comm) error {
		return func(c *Comm) error {
			x := make([]float32, n)
			return AllReduce(c, &Reduction[float32]{Name: name, Op: op, Whole: x, Out: x})
		}
	}
	barrier := func(c *Comm) error { return c.Barrier(context.Background()) }
	gather := func(c *Comm) error { return AllGather(c, []int64{1}, make([]int64, c.Size())) }
	cases := map[string]struct {
		usual, odd func(c *Comm) error
		want       [2]string
	}{
		"operation": {reduce("x", 8, Sum[float32]()), barrier, [2]string{`AllReduce "x"`, "Barrier"}},
		"primitive": {gather, reduce("x", 8, Sum[float32]()), [2]string{"AllGather", `AllReduce "x"`}},
		"length":    {reduce("x", 8, Sum[float32]()), reduce("x", 9, Sum[float32]()), [2]string{"8 float32", "9 float32"}},
		"operator":  {reduce("x", 8, Sum[float32]()), reduce("x", 8, Max[float32]()), [2]string{"sum", "max"}},
		"name":      {reduce("x", 8, Sum[float32]()), reduce("y", 8, Sum[float32]()), [2]string{`"x"`, `"y"`}},
		"type": {reduce("x", 8, Sum[float32]()), func(c *Comm) error {
			x := make([]int32, 8)
			return AllReduce(c, &Reduction[int32]{Name: "x", Op: Sum[int32](), Whole: x, Out: x})
		}, [2]string{"float32", "int32"}},
	}
	for name, x := range cases {
		for where, hosts := range map[string][][]int{"one each": {{0}, {1}, {2}}, "two and one": {{0, 1}, {2}}} {
			t.Run(name+"/"+where, func(t *testing.T) {
				t.Parallel()
				groups := tcpGroups(t, 3, hosts)
				defer abandon(groups)
				for r, err := range outcomesOf(groups, 3, func(c *Comm) error {
					if err := c.Barrier(context.Background()); err != nil {
						return err
					}
					if c.Rank() == 2 {
						return x.odd(c)
					}
					return x.usual(c)
				}) {
					var m *MismatchError
					require.ErrorAs(t, err, &m, "rank %d", r)
					require.True(t, (m.Rank == 2) != (m.Other == 2), "%v", err)
					require.Contains(t, err.Error(), x.want[0])
					require.Contains(t, err.Error(), x.want[1])
				}
			})
		}
	}
}

// TestRanksThatHaveGoneOnAreFoundOut requires that a mismatch is found if the call of one rank
// differs from the calls of the other ranks and the rank only sends in that call. The rank may
// return from the call before the mismatch is found; it must then get the error in a later
// call. If it makes no later call, the other ranks must still get the error.
func TestRanksThatHaveGoneOnAreFoundOut(t *testing.T) {
	broadcast := func(root int, by string) func(c *Comm) error {
		return func(c *Comm) error { return Broadcast(c, root, make([]int64, 4), WithAlgorithm(by)) }
	}
	cases := map[string]struct {
		odd        int
		usual, its func(c *Comm) error
		want       [2]string
		rests      bool // rank odd makes no later call until the group has failed
	}{
		"root":      {2, broadcast(0, "binomial"), broadcast(2, "binomial"), [2]string{"from rank 0", "from rank 2"}, false},
		"algorithm": {0, broadcast(0, "chain"), broadcast(0, "binomial"), [2]string{"by chain", "by binomial"}, false},
		"at rest": {0, func(c *Comm) error { return AllGather(c, []int64{1}, make([]int64, c.Size())) }, func(c *Comm) error {
			return Exscan(c, Sum[int32](), []int32{1}, make([]int32, 1))
		}, [2]string{"AllGather", "Exscan"}, true},
		"several": {0, func(c *Comm) error { return Scatter(c, 0, nil, make([]int64, 1)) }, func(c *Comm) error {
			for range 5 {
				if err := broadcast(0, "binomial")(c); err != nil {
					return err
				}
			}
			return nil
		}, [2]string{"Scatter", "Broadcast"}, false},
	}
	for name, x := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			groups := tcpGroups(t, 3, nil)
			defer abandon(groups)
			for r, err := range outcomesOf(groups, 3, func(c *Comm) error {
				if err := c.Barrier(context.Background()); err != nil {
					return err
				}
				call := x.usual
				if c.Rank() == x.odd {
					call = x.its
				}
				if err := call(c); err != nil {
					return err
				}
				if c.Rank() == x.odd && x.rests {
					<-groups[c.Rank()].mesh.Node(c.Rank()).Failed()
				}
				for { // ranks that only send may complete a few barriers before the error
					if err := c.Barrier(context.Background()); err != nil {
						return err
					}
				}
			}) {
				var m *MismatchError
				require.ErrorAs(t, err, &m, "rank %d", r)
				require.True(t, (m.Rank == x.odd) != (m.Other == x.odd), "%v", err)
				require.Contains(t, err.Error(), x.want[0])
				require.Contains(t, err.Error(), x.want[1])
			}
		})
	}
}

func TestFailuresOverTCPReachThoseWhoWait(t *testing.T) {
	cause := errors.New("the disk is full")
	ways := map[string]struct {
		act  func(g *TCPGroup, c *Comm) error
		want string
		is   error
	}{
		"closing with an error": {func(_ *TCPGroup, c *Comm) error { c.Close(cause); return nil }, "the disk is full", nil},
		"aborting":              {func(g *TCPGroup, _ *Comm) error { g.Abort(cause); return nil }, "the disk is full", nil},
		"leaving":               {func(g *TCPGroup, _ *Comm) error { return g.Close() }, "left the group", ErrLeft},
		"being cancelled": {func(_ *TCPGroup, c *Comm) error {
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(cause)
			return c.Barrier(ctx)
		}, "cancelled: the disk is full", nil},
	}
	for name, w := range ways {
		for _, who := range []int{0, 1, 2} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				groups := tcpGroups(t, 3, nil)
				defer abandon(groups)
				for r, err := range outcomesOf(groups, 3, func(c *Comm) error {
					if c.Rank() == who {
						w.act(groups[who], c)
						return nil
					}
					x := make([]float64, 100)
					for { // the first AllReduce may still succeed with messages that rank who sent before
						if err := AllReduce(c, &Reduction[float64]{Name: "x", Op: Sum[float64](), Whole: x, Out: x}); err != nil {
							return err
						}
					}
				}) {
					if r == who {
						continue
					}
					require.ErrorContains(t, err, w.want)
					if w.is != nil {
						require.ErrorIs(t, err, w.is)
					}
				}
			})
		}
	}
}

// TestSteadyStateOverTCPAllocatesNothing requires that a loop of each primitive allocates
// nothing on any rank.
func TestSteadyStateOverTCPAllocatesNothing(t *testing.T) {
	const p, n = 2, 64
	groups := tcpGroups(t, p, nil)
	defer closeAll(t, groups)
	of := endsOf(groups)
	op := Sum[float64]()
	calls := map[string]func(c *Comm, in, out []float64) error{
		"Barrier":   func(c *Comm, _, _ []float64) error { return c.Barrier(context.Background()) },
		"Broadcast": func(c *Comm, in, _ []float64) error { return Broadcast(c, 0, in) },
		"Reduce":    func(c *Comm, in, out []float64) error { return Reduce(c, 0, op, in, out[:len(in)]) },
		"Gather":    func(c *Comm, in, out []float64) error { return Gather(c, 0, in, out) },
		"AllGather": func(c *Comm, in, out []float64) error { return AllGather(c, in, out) },
		"Scatter":   func(c *Comm, in, out []float64) error { return Scatter(c, 0, out, in) },
		"ReduceScatter": func(c *Comm, in, out []float64) error {
			return ReduceScatter(c, op, out, in)
		},
		"AllToAll": func(c *Comm, in, out []float64) error { return AllToAll(c, in, out[:len(in)]) },
		"Scan":     func(c *Comm, in, out []float64) error { return Scan(c, op, in, out[:len(in)]) },
		"Exscan":   func(c *Comm, in, out []float64) error { return Exscan(c, op, in, out[:len(in)]) },
		"AllReduce": func() func(c *Comm, in, out []float64) error {
			reqs := [p]Reduction[float64]{}
			return func(c *Comm, in, _ []float64) error {
				r := &reqs[c.Rank()]
				*r = Reduction[float64]{Name: "x", Op: op, Whole: in, Out: in}
				return AllReduce(c, r)
			}
		}(),
	}
	for name, call := range calls {
		step, done := make(chan bool), make(chan error)
		go func() {
			in, out := make([]float64, n), make([]float64, p*n)
			for range step {
				for range 100 {
					if err := call(of(1), in, out); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}
		}()
		in, out := make([]float64, n), make([]float64, p*n)
		run := func() {
			step <- true
			for range 100 {
				if err := call(of(0), in, out); err != nil {
					t.Error(err)
				}
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		run()
		allocs := testing.AllocsPerRun(5, run)
		close(step)
		require.Less(t, allocs/100, 0.1, name)
	}
}
