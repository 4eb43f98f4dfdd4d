package plan

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// waitingCycle returns an error if vertices could wait for each other in a cycle. This is
// possible if the receiver of a pipelined edge may have to finish another input first, or if
// pipelined edges form a cycle when their directions are ignored. Feedback edges do not count,
// as they carry no rows: they stand for the queue's decision to run another superstep or round.
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

// execution simulates a run of a plan, with tokens in place of rows and with the smallest
// buffers: a pipelined edge holds one token, a materialised edge any number. A vertex reads its
// side inputs to the end before its data inputs. It waits at one input until that input has a
// token or has ended. It sends a token to each of its outgoing edges in turn, and blocks while
// the edge is full. An adversary chooses which vertex moves and at which input it waits.
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
	port     int   // edge at which the vertex waits, or -1
	sending  []int // outgoing edges to which the current token has not yet been sent, in order
	left     int   // tokens to emit: of a source, or stored by a vertex whose inputs must end first
	holds    bool  // whether the vertex emits only after its inputs have ended, as a sort does
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

// step moves vertex i and reports whether it was able to move.
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
			v.left = simTokens // a side input must end before anything is emitted
		} else {
			v.sending = v.out
		}
	case !e.ended:
		return false
	}
	v.port = -1
	return true
}

// run moves vertices until none can move, and returns the vertices that have not finished. The
// limit on the number of moves is far above what any plan needs. Only a plan with a cycle could
// reach it.
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

// lcg is a small random generator for the adversary, so that one seed determines a whole
// schedule.
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
		require.Empty(t, x.run(choose), "no vertex may wait for ever in the plan\n%s", p.Text())
	})
}

// TestDeadlockIsSeen requires that waitingCycle and execution detect deadlocks. It makes all
// edges of two diamonds pipelined. The first diamond has a broadcast on one branch. In the
// second diamond the branches are read one after the other.
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
