package simulate

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/collective/program"
)

// drawn is a random set of programs. The programs end, because events have a global order, each
// lane has its events in that order, and an event depends only on earlier events of the same
// rank.
type drawn struct {
	programs []*program.Program
	events   []drawnEvent
}

// drawnEvent is a message from rank from to rank to. If the two ranks are equal, it is a local
// instruction.
type drawnEvent struct {
	from, to   int
	send, recv program.Dep // the instructions of the event
	size       int
	folds      int
}

const drawnElements = 4096 // in 4 chunks

func drawPrograms(t *rapid.T) *drawn {
	p := rapid.IntRange(1, 6).Draw(t, "p")
	d := &drawn{}
	done := make([][]program.Dep, p) // instructions of each rank so far
	lanes := map[[3]int]int{}
	for r := range p {
		d.programs = append(d.programs, blank("drawn", p, r, 4))
	}
	lane := func(r, peer, way int) int {
		l, ok := lanes[[3]int{r, peer, way}]
		if !ok {
			l = len(d.programs[r].Lanes)
			lanes[[3]int{r, peer, way}] = l
			peers := program.Lane{SendPeer: program.NoPeer, RecvPeer: program.NoPeer}
			switch way {
			case 0:
				peers.SendPeer = peer
			case 1:
				peers.RecvPeer = peer
			}
			d.programs[r].Lanes = append(d.programs[r].Lanes, peers)
		}
		return l
	}
	add := func(r, l int, in program.Instruction) program.Dep {
		for range rapid.IntRange(0, min(2, len(done[r]))).Draw(t, "deps") {
			in.After = append(in.After, rapid.SampledFrom(done[r]).Draw(t, "after"))
		}
		steps := &d.programs[r].Lanes[l].Steps
		*steps = append(*steps, in)
		return program.Dep{Lane: l, Step: len(*steps) - 1}
	}
	for range rapid.IntRange(0, 40).Draw(t, "events") {
		e := drawnEvent{from: rapid.IntRange(0, p-1).Draw(t, "from"), to: rapid.IntRange(0, p-1).Draw(t, "to")}
		lo := rapid.IntRange(0, 3).Draw(t, "lo")
		hi := rapid.IntRange(lo+1, 4).Draw(t, "hi")
		in, out := program.Span(program.In, 0, lo, hi), program.Span(program.Out, 0, lo, hi)
		e.size = (hi - lo) * drawnElements / 4 * 8
		e.folds = rapid.IntRange(0, 1).Draw(t, "folds")
		if e.from == e.to {
			e.folds = 0
			e.recv = add(e.to, lane(e.to, 0, 2), program.Instruction{Op: program.DoCopy, Dst: out, Src: []program.Ref{in}})
			done[e.to] = append(done[e.to], e.recv)
		} else {
			e.send = add(e.from, lane(e.from, e.to, 0), program.Instruction{Op: program.DoSend, Src: []program.Ref{in}})
			recv := program.Instruction{Op: program.DoRecv, Dst: out}
			if e.folds == 1 {
				recv.Op, recv.Src = program.DoRecvReduce, []program.Ref{in}
			}
			e.recv = add(e.to, lane(e.to, e.from, 1), recv)
			done[e.from], done[e.to] = append(done[e.from], e.send), append(done[e.to], e.recv)
		}
		d.events = append(d.events, e)
	}
	return d
}

// bound returns the time of the critical path of the programs if nothing waits in a queue.
func (d *drawn) bound(n *Network) float64 {
	type place struct{ rank, lane, step int }
	end := map[place]float64{}
	start := func(r int, at program.Dep) float64 {
		t := end[place{r, at.Lane, at.Step - 1}] // 0 for the first step of a lane
		for _, a := range d.programs[r].Lanes[at.Lane].Steps[at.Step].After {
			t = max(t, end[place{r, a.Lane, a.Step}])
		}
		return t
	}
	last := 0.0
	for _, e := range d.events {
		size, at := float64(e.size), start(e.to, e.recv)
		if e.from == e.to {
			at += n.Copy * size
		} else {
			sent := start(e.from, e.send) + n.SendOverhead + n.SendCopy*size
			end[place{e.from, e.send.Lane, e.send.Step}] = sent
			arrived := sent + n.Rack.Latency
			if n.Rack.Bandwidth > 0 {
				arrived += size / n.Rack.Bandwidth
			}
			at = max(at, arrived) + n.RecvOverhead + n.RecvCopy*size + float64(e.folds)*n.Gamma*size
		}
		end[place{e.to, e.recv.Lane, e.recv.Step}] = at
		last = max(last, at)
	}
	return last
}

// TestRandomProgramsTakeTheirCriticalPath requires that random programs take at least the time
// of their critical path, and exactly that time if nothing waits in a queue.
func TestRandomProgramsTakeTheirCriticalPath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawPrograms(t)
		w := &Work{P: len(d.programs), Elements: drawnElements, Elem: 8,
			Program: func(r int) *program.Program { return d.programs[r] }}
		n := flat()
		n.Rack.Bandwidth = 0
		ideal, err := Run(t.Context(), w, n, whole)
		require.NoError(t, err)
		require.InDelta(t, d.bound(n), ideal.Time, 1e-12)
		require.InDelta(t, ideal.Time, ideal.Chain.Total(), 1e-12)

		n = flat()
		n.Cores = rapid.IntRange(0, 3).Draw(t, "cores")
		n.Jitter = rapid.SampledFrom([]float64{0, 0.3}).Draw(t, "jitter")
		n.Window = rapid.SampledFrom([]int{0, 1 << 12, 1 << 30}).Draw(t, "window")
		if p := len(d.programs); p > 1 && rapid.Bool().Draw(t, "straggler") {
			n.Stragglers = map[int]float64{rapid.IntRange(0, p-1).Draw(t, "who"): 3}
		}
		real, err := Run(t.Context(), w, n, whole)
		if n.Window == 0 && err != nil {
			// Programs in which a sender must run ahead of its receiver do not end without
			// buffers. Package check would refuse them.
			require.ErrorContains(t, err, "waits for ever")
			return
		}
		require.NoError(t, err)
		require.GreaterOrEqual(t, real.Time, ideal.Time*(1-1e-12))
		require.GreaterOrEqual(t, real.Time, d.bound(n)*(1-1e-12))
		require.InDelta(t, real.Time, real.Chain.Total(), 1e-12)
		again, err := Run(t.Context(), w, n, whole)
		require.NoError(t, err)
		require.Equal(t, real, again)
	})
}
