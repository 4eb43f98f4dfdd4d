package execute

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/transport/membership"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

func progsOf(t testing.TB, c program.Collective, name string, p int) []*program.Program {
	a, err := algorithm.Find(c, name)
	require.NoError(t, err)
	pr := algorithm.Params{P: p}
	require.NoError(t, a.Supports(pr))
	return generate(a, pr)
}

// sumOf returns the operation of a rank that sums n float64s.
func sumOf(prog *program.Program, seq uint64, what *mesh.Operation, n int) *Operation {
	l := program.Even(n, prog.Chunks)
	return &Operation{
		Seq: seq, What: what, Elem: 8, Layout: l,
		In:  [][]byte{make([]byte, 8*l.Size(program.In, prog.In))},
		Out: make([]byte, 8*l.Size(program.Out, prog.Out)), Reducer: sum{},
	}
}

var what = &mesh.Operation{Hash: 7, Text: "AllReduce (float64, sum)"}

func TestRanksThatDisagree(t *testing.T) {
	progs := progsOf(t, program.AllReduce, "direct", 3)
	cases := []struct {
		name   string
		change func(op *Operation)
		says   []string
	}{
		{"another operation", func(op *Operation) { op.What = &mesh.Operation{Hash: 8, Text: "Barrier"} }, []string{"Barrier", "AllReduce (float64, sum)"}},
		{"another number", func(op *Operation) { op.Seq = 6 }, []string{membership.Describe(5, what), membership.Describe(6, what)}},
		{"another length", func(op *Operation) { *op = *sumOf(progs[0], 5, what, 31) }, []string{"of which it sends", "of which it expects"}},
	}
	for i, net := range []network{inMemory, overTCP} {
		for _, mode := range modes {
			for _, c := range cases {
				m := newTeam(t, net(t, 3), progs, mode.opt)
				errs := everyone(3, func(r int) error {
					op := sumOf(progs[r], 5, what, 30)
					if r == 1 {
						c.change(op)
					}
					_, err := m.runners[r].Run(op)
					return err
				})
				m.close()
				var mismatch *membership.MismatchError
				for r, err := range errs {
					if r == 1 || err != nil { // the other rank may have finished before the mismatch was found
						require.ErrorAs(t, err, &mismatch, "%s %s: rank %d", c.name, mode.name, r)
						if i > 0 {
							continue // only a real membership adds the operation of a rank in another process
						}
						for _, s := range c.says {
							require.ErrorContains(t, err, s, "%s %s: rank %d", c.name, mode.name, r)
						}
					}
				}
			}
		}
	}
}

// flaky is a node with connections that fail. The first calls of their methods, left in total,
// succeed; all later calls return cause.
type flaky struct {
	mesh.Node
	left  atomic.Int64
	cause error
}

func (f *flaky) Open(ctx context.Context, routes []mesh.Route) ([]mesh.Conn, error) {
	conns, err := f.Node.Open(ctx, routes)
	for i := range conns {
		conns[i] = &flakyConn{conns[i], f}
	}
	return conns, err
}

type flakyConn struct {
	mesh.Conn
	f *flaky
}

func (c *flakyConn) call(do func() error) error {
	if c.f.left.Add(-1) < 0 {
		return c.f.cause
	}
	return do()
}

func (c *flakyConn) Send(h *mesh.Header, b []byte) error {
	return c.call(func() error { return c.Conn.Send(h, b) })
}

func (c *flakyConn) Post(h *mesh.Header, b []byte) error {
	return c.call(func() error { return c.Conn.Post(h, b) })
}

func (c *flakyConn) Next(h *mesh.Header) error {
	return c.call(func() error { return c.Conn.Next(h) })
}

func (c *flakyConn) Read(b []byte) error { return c.call(func() error { return c.Conn.Read(b) }) }

func TestBrokenConnectionEndsAll(t *testing.T) {
	cut := errors.New("cable cut")
	for _, name := range []string{"direct", "ring", "recursive-doubling", "double-tree"} {
		progs := progsOf(t, program.AllReduce, name, 4)
		for _, mode := range modes {
			for calls := range int64(30) {
				nodes := inMemory(t, 4)
				f := &flaky{Node: nodes[2], cause: cut}
				f.left.Store(calls)
				nodes[2] = f
				m := newTeam(t, nodes, progs, mode.opt)
				errs := everyone(4, func(r int) error {
					_, err := m.runners[r].Run(sumOf(progs[r], 1, what, 100))
					return err
				})
				if f.left.Load() < 0 {
					require.ErrorIs(t, errs[2], cut)
				}
				for _, err := range errs {
					if err != nil {
						require.ErrorIs(t, err, cut)
					}
				}
				m.close()
			}
		}
	}
}

// misbehaved is a Reducer that calls do instead of folding.
type misbehaved struct{ do func() }

func (m misbehaved) Fold(_, _, _ []byte) { m.do() }

func TestOperatorsThatDoNotReturn(t *testing.T) {
	own := errors.New("own error")
	cases := []struct {
		name string
		do   func()
		says []string
	}{
		{"panic", func() { panic("lost my way") }, []string{"rank 1 in", "panic: lost my way", "failure_test.go"}},
		{"panic with an error", func() { panic(own) }, []string{"rank 1 in", "own error", "failure_test.go"}},
		{"exit", runtime.Goexit, []string{"rank 1 in", "Goexit"}},
	}
	for name, length := range map[string]int{
		"direct":             100,
		"recursive-doubling": 4000, // so long that messages are folded from the sender's memory
	} {
		progs := progsOf(t, program.AllReduce, name, 4)
		for _, mode := range modes {
			for _, c := range cases {
				nodes := inMemory(t, 4)
				m := newTeam(t, nodes, progs, mode.opt)
				errs := everyone(4, func(r int) error {
					op := sumOf(progs[r], 1, what, length)
					if r == 1 {
						op.Reducer = misbehaved{c.do}
					}
					_, err := m.runners[r].Run(op)
					return err
				})
				m.close()
				if errs[1] == nil { // in a serial run, Goexit ends the caller's goroutine
					require.Equal(t, "exit", c.name)
					errs[1] = nodes[1].Err()
				}
				for r, err := range errs {
					if r != 1 && err == nil {
						continue // the rank had finished before the failure
					}
					require.Error(t, err, "%s %s: rank %d", c.name, mode.name, r)
					for _, s := range c.says {
						require.ErrorContains(t, err, s)
					}
					require.Equal(t, c.name == "panic with an error", errors.Is(err, own))
				}
			}
		}
	}
}

func TestRefusals(t *testing.T) {
	progs := progsOf(t, program.AllReduce, "direct", 2)
	nodes := inMemory(t, 2)

	broken := *progs[0]
	broken.Rank = 5
	_, err := New(t.Context(), &broken, nodes[0], Options{})
	require.ErrorContains(t, err, "rank 5 of 2")
	_, err = New(t.Context(), progs[1], nodes[0], Options{})
	require.ErrorContains(t, err, "the node is rank 0")
	_, err = New(t.Context(), progs[0], nodes[0], Options{Segment: -1})
	require.ErrorContains(t, err, "segments of -1 bytes")

	shares := *progs[0]
	shares.Lanes = append(append([]program.Lane{}, shares.Lanes...), shares.Lanes[1])
	_, err = New(t.Context(), &shares, nodes[0], Options{})
	require.ErrorContains(t, err, "lanes 1 and 2 both use channel 0 of rank 1")

	circle := *progs[0]
	circle.Lanes = append([]program.Lane{}, circle.Lanes...)
	l := &circle.Lanes[1]
	l.Steps = append([]program.Instruction{}, l.Steps...)
	l.Steps[1].After = []program.Dep{{Lane: 0, Step: 0}}
	_, err = New(t.Context(), &circle, nodes[0], Options{})
	require.ErrorContains(t, err, "waits for itself")

	m := newTeam(t, nodes, progs, Options{})
	defer m.close()
	for want, change := range map[string]func(op *Operation){
		"does not say what it is": func(op *Operation) { op.What = nil },
		"elements of 0 bytes":     func(op *Operation) { op.Elem = 0 },
		"no operator":             func(op *Operation) { op.Reducer = nil },
		"a layout of 3 chunks":    func(op *Operation) { op.Layout = program.Even(10, 3) },
		"brings 2 buffers":        func(op *Operation) { op.In = append(op.In, nil) },
		"brings 0 bytes":          func(op *Operation) { op.In[0] = nil },
		"has room for 79 bytes":   func(op *Operation) { op.Out = op.Out[1:] },
		"different lengths":       func(op *Operation) { op.Layout.In = program.Blocks([]int{4, 6}).In },
	} {
		op := sumOf(progs[0], 1, what, 10)
		change(op)
		_, err := m.runners[0].Run(op)
		require.ErrorContains(t, err, want)
		require.True(t, strings.HasPrefix(err.Error(), "allreduce direct: rank 0: "), err)
	}
	require.NoError(t, nodes[0].Err(), "refusals must not end the group")
}

func TestLengthsOfAnAllToAllMustFit(t *testing.T) {
	progs := progsOf(t, program.AllToAll, "direct", 2)
	m := newTeam(t, inMemory(t, 2), progs, Options{})
	defer m.close()
	l := program.Exchange([]int{1, 2}, []int{2, 1})
	_, err := m.runners[0].Run(&Operation{Seq: 1, What: what, Elem: 1, Layout: l, In: [][]byte{make([]byte, 3)}, Out: make([]byte, 3)})
	require.ErrorContains(t, err, "operands of different lengths")
}
