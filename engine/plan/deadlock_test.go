package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// waitingCycle returns an error if vertices can wait for each other in a circle:
// if a receiver of a pipelined edge may have to finish another input first, or
// pipelined edges close a circle when read without direction. Feedback edges
// carry verdicts, whose schedule is the queue's own.
func waitingCycle(p *Plan) error {
	for _, v := range p.Vertices {
		pipelined, all := 0, 0
		for _, e := range p.In(v.ID) {
			if e.Role == Feedback {
				continue
			}
			all++
			if e.Mode == Pipelined {
				pipelined++
			}
		}
		if pipelined > 0 && all > 1 {
			return fmt.Errorf("v%d reads a pipelined edge among %d inputs", v.ID, all)
		}
	}
	root := make([]int, len(p.Vertices))
	for i := range root {
		root[i] = i
	}
	find := func(i int) int {
		for root[i] != i {
			i = root[i]
		}
		return i
	}
	for _, e := range p.Edges {
		if e.Role == Feedback || e.Mode != Pipelined {
			continue
		}
		a, b := find(int(e.From)), find(int(e.To))
		if a == b {
			return fmt.Errorf("the pipelined edge from v%d to v%d closes a circle", e.From, e.To)
		}
		root[a] = b
	}
	return nil
}

// execution runs a plan with tokens for rows on buffers as small as can be: a
// pipelined edge holds one token, a materialised one any number. A vertex reads
// a side input to its end before data, insists on the port it chose until it
// has a token or the end, and hands a token on to each of its edges in turn,
// blocking where one is full. Which vertex moves and which port it chooses is
// up to the adversary.
type execution struct {
	edges []simEdge
	verts []simVertex
}

type simEdge struct {
	side, bounded, ended bool
	held                 int
}

type simVertex struct {
	in, out  []int
	port     int   // edge it insists on, -1 for none
	sending  []int // edges still to get the token, in order
	left     int   // tokens a source has yet to make, or a holder has saved
	holds    bool  // emits only when its inputs have ended, as a sort does
	finished bool
}

const simTokens = 3

func newExecution(p *Plan, holds func(VertexID) bool) *execution {
	x := &execution{verts: make([]simVertex, len(p.Vertices))}
	for i := range x.verts {
		x.verts[i] = simVertex{port: -1, holds: holds(VertexID(i))}
	}
	for _, e := range p.Edges {
		if e.Role == Feedback {
			continue
		}
		k := len(x.edges)
		x.edges = append(x.edges, simEdge{side: e.Role == Side, bounded: e.Mode == Pipelined})
		x.verts[e.From].out = append(x.verts[e.From].out, k)
		x.verts[e.To].in = append(x.verts[e.To].in, k)
	}
	for i := range x.verts {
		if len(x.verts[i].in) == 0 {
			x.verts[i].left = simTokens
		}
	}
	return x
}

// step moves one vertex and reports whether it could.
func (x *execution) step(i int, choose func(n int) int) bool {
	v := &x.verts[i]
	switch {
	case v.finished:
		return false
	case len(v.sending) > 0:
		e := &x.edges[v.sending[0]]
		if e.bounded && e.held > 0 {
			return false
		}
		e.held++
		v.sending = v.sending[1:]
		return true
	}
	if v.port < 0 {
		var side, data []int
		for _, k := range v.in {
			if e := &x.edges[k]; e.ended && e.held == 0 {
				continue
			} else if e.side {
				side = append(side, k)
			} else {
				data = append(data, k)
			}
		}
		if len(side) > 0 {
			data = side
		}
		if len(data) > 0 {
			v.port = data[choose(len(data))]
			return true
		}
		if v.left > 0 {
			v.left--
			v.sending = v.out
			return true
		}
		for _, k := range v.out {
			x.edges[k].ended = true
		}
		v.finished = true
		return true
	}
	e := &x.edges[v.port]
	switch {
	case e.held > 0:
		e.held--
		if v.holds || e.side {
			v.left = simTokens // a side input must reach its end before anything is emitted
		} else {
			v.sending = v.out
		}
	case !e.ended:
		return false
	}
	v.port = -1
	return true
}

// run returns the vertices that never finish. The bound on moves is far above
// what any plan needs; only one whose vertices feed themselves reaches it.
func (x *execution) run(choose func(n int) int) (stuck []int) {
	ready := make([]int, 0, len(x.verts))
	for range 100_000 {
		ready = ready[:0]
		for i := range x.verts {
			ready = append(ready, i)
		}
		moved := false
		for len(ready) > 0 && !moved {
			k := choose(len(ready))
			moved = x.step(ready[k], choose)
			ready[k] = ready[len(ready)-1]
			ready = ready[:len(ready)-1]
		}
		if !moved {
			break
		}
	}
	for i := range x.verts {
		if !x.verts[i].finished {
			stuck = append(stuck, i)
		}
	}
	return stuck
}

// lcg is a small generator for the adversary's choices, so that one drawn seed
// stands for a whole schedule.
func lcg(seed uint64) func(n int) int {
	return func(n int) int {
		seed = seed*6364136223846793005 + 1442695040888963407
		return int((seed >> 33) % uint64(n))
	}
}

func TestNoDeadlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t)
		p, err := Compile(g, rapid.IntRange(1, min(g.Shards, 3)).Draw(t, "parallelism"))
		require.NoError(t, err)
		choose := lcg(rapid.Uint64().Draw(t, "schedule"))
		x := newExecution(p, func(VertexID) bool { return choose(2) == 0 })
		require.Empty(t, x.run(choose), "vertices wait for ever\n%s", p.Text())
	})
}

// TestDeadlockIsSeen holds that the two checks can fail: with everything
// pipelined, a diamond with a broadcast stands still, as does one whose two
// branches are read one after the other.
func TestDeadlockIsSeen(t *testing.T) {
	broadcast := &Graph{Shards: 1, Nodes: []Node{
		{ID: 0, Op: "Range"},
		{ID: 1, Op: "Mean", Inputs: []Input{{From: 0, Partitioner: Rebalance}}},
		{ID: 2, Op: "Map", Inputs: []Input{{From: 0}, {From: 1, Partitioner: Broadcast, Role: Side}}},
	}}
	union := &Graph{Shards: 1, Nodes: []Node{
		{ID: 0, Op: "Range"},
		{ID: 1, Op: "Map", Inputs: []Input{{From: 0, Partitioner: Rebalance}}},
		{ID: 2, Op: "Union", Inputs: []Input{{From: 0}, {From: 1}}},
	}}
	for _, g := range []*Graph{broadcast, union} {
		p, err := Compile(g, 1)
		require.NoError(t, err)
		require.NoError(t, waitingCycle(p))
		broken := *p
		broken.Edges = append([]Edge(nil), p.Edges...)
		for i := range broken.Edges {
			broken.Edges[i].Mode = Pipelined
		}
		require.Error(t, waitingCycle(&broken))
		stuck := 0
		for seed := range uint64(50) {
			hold := func(v VertexID) bool { return v == 1 }
			require.Empty(t, newExecution(p, hold).run(lcg(seed)))
			if len(newExecution(&broken, hold).run(lcg(seed))) > 0 {
				stuck++
			}
		}
		require.Positive(t, stuck)
	}
}
