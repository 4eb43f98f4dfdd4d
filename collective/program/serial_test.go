package program_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// requireOrder requires that order contains every part of p exactly once, and after all
// dependencies of the part.
func requireOrder(t *testing.T, p *program.Program, order []program.Part) {
	t.Helper()
	type at struct{ lane, step int }
	parts, done := map[at]int{}, map[program.Part]bool{} // number of parts of each instruction that are not done yet
	total := 0
	for l := range p.Lanes {
		for s, in := range p.Lanes[l].Steps {
			n := 1
			if in.Op.Sends() && in.Op != program.DoSend {
				n = 2
			}
			parts[at{l, s}] = n
			total += n
		}
	}
	require.Len(t, order, total)
	for _, part := range order {
		in := p.Lanes[part.Lane].Steps[part.Step]
		require.False(t, done[part], "%v twice", part)
		require.True(t, part.Send && in.Op.Sends() || !part.Send && in.Op != program.DoSend, "%v of %s", part, &in)
		for _, d := range in.After {
			require.Zero(t, parts[at{d.Lane, d.Step}], "%v must come after its dependencies", part)
		}
		if part.Send && in.Op != program.DoSend {
			require.True(t, done[program.Part{Lane: part.Lane, Step: part.Step}], "%v must send after it receives", part)
		}
		for s := range part.Step {
			before := p.Lanes[part.Lane].Steps[s].Op
			if part.Send && before.Sends() || !part.Send && before != program.DoSend {
				require.True(t, done[program.Part{Lane: part.Lane, Step: s, Send: part.Send}], "%v must come after step %d of its half", part, s)
			}
		}
		done[part] = true
		parts[at{part.Lane, part.Step}]--
	}
}

// requireEnd requires that all ranks finish if each rank runs its parts in serial order and
// buffers for messages are unbounded.
func requireEnd(t *testing.T, progs []*program.Program) {
	t.Helper()
	type route struct{ from, to, channel int }
	waiting := map[route]int{}
	orders := make([][]program.Part, len(progs))
	for r, p := range progs {
		order, err := program.SerialOrder(p)
		require.NoError(t, err)
		requireOrder(t, p, order)
		orders[r] = order
	}
	for moved := true; moved; {
		moved = false
		for r := range orders {
			for len(orders[r]) > 0 {
				part := orders[r][0]
				l := &progs[r].Lanes[part.Lane]
				if part.Send {
					waiting[route{r, l.SendPeer, l.Channel}]++
				} else if l.Steps[part.Step].Op.Receives() {
					from := route{l.RecvPeer, r, l.Channel}
					if waiting[from] == 0 {
						break
					}
					waiting[from]--
				}
				orders[r] = orders[r][1:]
				moved = true
			}
		}
	}
	for r := range orders {
		if len(orders[r]) > 0 {
			at := orders[r][0]
			require.Fail(t, "some ranks wait for ever", "rank %d of %s %s p=%d root=%d waits in lane %d step %d: %s", r,
				progs[r].Collective, progs[r].Algorithm, len(progs), progs[r].Root, at.Lane, at.Step, &progs[r].Lanes[at.Lane].Steps[at.Step])
		}
	}
}

func TestSerialOrderOfAllAlgorithmsEnds(t *testing.T) {
	for c := range program.NumCollectives {
		for _, a := range algorithm.For(c) {
			for p := 1; p <= 20; p++ {
				for root := range p {
					pr := algorithm.Params{P: p, Root: root}
					if !c.Rooted() && root > 0 {
						break
					}
					if root > 1 && root < p-1 || a.Supports(pr) != nil {
						continue
					}
					progs := make([]*program.Program, p)
					for r := range progs {
						progs[r] = a.Generate(pr, r)
					}
					requireEnd(t, progs)
				}
			}
		}
	}
}

// TestSerialOrder requires that a rank that is the root of one tree and a leaf of another tree
// sends what other ranks wait for before it receives the result of the other tree.
func TestSerialOrder(t *testing.T) {
	out := func(c int) program.Ref { return program.Chunk(program.Out, 0, c) }
	in := func(c int) program.Ref { return program.Chunk(program.In, 0, c) }
	p := &program.Program{P: 3, Chunks: 2, In: sharding.Range{Lo: 0, Hi: 2}, Out: sharding.Range{Lo: 0, Hi: 2}, Root: -1,
		Lanes: []program.Lane{
			{SendPeer: 1, RecvPeer: 1, Steps: []program.Instruction{ // leaf
				{Op: program.DoSend, Src: []program.Ref{in(0)}},
				{Op: program.DoRecv, Dst: out(0), After: []program.Dep{{Lane: 0, Step: 0}}},
			}},
			{SendPeer: 2, RecvPeer: 2, Steps: []program.Instruction{ // root
				{Op: program.DoRecvReduceSend, Dst: out(1), Src: []program.Ref{in(1)}},
			}},
		}}
	order, err := program.SerialOrder(p)
	require.NoError(t, err)
	require.Equal(t, "[{0 0 true} {1 0 false} {1 0 true} {0 1 false}]", fmt.Sprint(order))

	p.Lanes[1].Steps[0].After = []program.Dep{{Lane: 1, Step: 0}}
	_, err = program.SerialOrder(p)
	require.ErrorContains(t, err, "lane 1 step 0 (recv-reduce-send out[1] = (in[1] received) after 1.0) waits for itself")
}
