package plan

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCompileRefusesParallelism(t *testing.T) {
	g := &Graph{Shards: 8, Nodes: []Node{{Op: "Range"}}}
	for _, p := range []int{-1, 0, 9} {
		_, err := Compile(g, p)
		require.ErrorContains(t, err, "--parallelism", "parallelism %d", p)
	}
	_, err := Compile(g, 9)
	require.ErrorContains(t, err, "--shards")
	for _, p := range []int{1, 8} {
		_, err := Compile(g, p)
		require.NoError(t, err)
	}
	_, err = Compile(nil, 1)
	require.Error(t, err)
}

// TestCompileRandomGraphs checks the properties that every plan must have. The checks follow
// from the definitions of these properties and do not repeat the algorithm of Compile.
func TestCompileRandomGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := randomGraph(t)
		require.NoError(t, g.Validate())
		parallelism := rapid.IntRange(1, g.Shards).Draw(t, "parallelism")
		fingerprint := g.Fingerprint()
		p, err := Compile(g, parallelism)
		require.NoError(t, err)
		require.Equal(t, fingerprint, g.Fingerprint(), "Compile must not modify the graph")
		require.NoError(t, p.check())

		again, err := Compile(g, parallelism)
		require.NoError(t, err)
		require.Equal(t, p, again)
		require.Equal(t, p.Text(), again.Text())

		checkChains(t, g, p)
		checkEdges(t, g, p)
		checkShares(t, g, p)
		require.NoError(t, waitingCycle(p))
	})
}

// needs reports whether node id is needed: it is a sink or part of a queue, or a needed node
// reads its rows, or the graph has neither sinks nor queues.
func needs(g *Graph, id NodeID) bool {
	if g.Nodes[id].Sink || g.Nodes[id].Queue != "" ||
		!slices.ContainsFunc(g.Nodes, func(n Node) bool { return n.Sink || n.Queue != "" }) {
		return true
	}
	return slices.ContainsFunc(g.Nodes, func(n Node) bool {
		return slices.ContainsFunc(n.Inputs, func(in Input) bool { return in.From == id }) && needs(g, n.ID)
	})
}

// checkChains requires that every needed node is in exactly one chain, that no other node is in
// a chain, and that each link of a chain is an input that may be chained.
func checkChains(t require.TestingT, g *Graph, p *Plan) {
	seen := map[NodeID]int{}
	for _, v := range p.Vertices {
		head := g.Nodes[v.Chain[0].Node]
		for k, m := range v.Chain {
			seen[m.Node]++
			n := g.Nodes[m.Node]
			require.Equal(t, v.Queue, n.Queue)
			require.Equal(t, head.Single, p.Parallelism > 1 && n.Single || p.Parallelism == 1 && head.Single)
			if k == 0 {
				require.Equal(t, -1, m.Parent)
				continue
			}
			require.Less(t, m.Parent, k)
			for port, in := range n.Inputs {
				if port == m.Port {
					require.Equal(t, v.Chain[m.Parent].Node, in.From)
					require.Equal(t, Forward, in.Partitioner)
					require.Contains(t, []Role{Data, Control}, in.Role)
				} else {
					require.Equal(t, Feedback, in.Role, "the other inputs of a chained node must be feedback, as it must not wait for another input")
				}
			}
		}
	}
	for id := range g.Nodes {
		require.Equal(t, needs(g, NodeID(id)), seen[NodeID(id)] > 0, "node %d", id)
	}
	for id, times := range seen {
		require.Equal(t, 1, times, "node %d", id)
	}
}

// checkEdges requires that every input is either a link of a chain or one edge. Except for
// feedback, an edge must lead to the head of a vertex with a higher number. Inputs that can be
// chained must be chained.
func checkEdges(t require.TestingT, g *Graph, p *Plan) {
	vertexOf := map[NodeID]VertexID{}
	type port struct {
		node NodeID
		port int
	}
	covered := map[port]int{}
	for _, v := range p.Vertices {
		for k, m := range v.Chain {
			vertexOf[m.Node] = v.ID
			if k > 0 {
				covered[port{m.Node, m.Port}]++
			}
		}
	}
	for _, e := range p.Edges {
		covered[port{e.ToNode, e.Port}]++
		in := g.Nodes[e.ToNode].Inputs[e.Port]
		require.Equal(t, Edge{
			From: vertexOf[in.From], FromNode: in.From, To: vertexOf[e.ToNode], ToNode: e.ToNode,
			Port: e.Port, Partitioner: in.Partitioner, Keys: in.Keys, Role: in.Role, Mode: e.Mode,
		}, e)
		if in.Role == Feedback {
			continue
		}
		require.Less(t, e.From, e.To)
		require.Equal(t, p.Vertices[e.To].Chain[0].Node, e.ToNode)
		alone := true
		for k, other := range g.Nodes[e.ToNode].Inputs {
			alone = alone && (k == e.Port || other.Role == Feedback)
		}
		from := p.Vertices[e.From]
		if alone && in.Partitioner == Forward && in.Role != Side {
			require.True(t, from.Parallelism != p.Vertices[e.To].Parallelism || from.Queue != p.Vertices[e.To].Queue,
				"the edge from node %d to node %d must be chained", e.FromNode, e.ToNode)
		}
	}
	inputs := 0
	for _, n := range g.Nodes {
		for k := range n.Inputs {
			if !needs(g, n.ID) {
				continue
			}
			inputs++
			require.Equal(t, 1, covered[port{n.ID, k}], "input %d of node %d must be a link of a chain or one edge", k, n.ID)
		}
	}
	require.Len(t, covered, inputs)
	total := 0
	for _, v := range p.Vertices {
		for _, e := range p.In(v.ID) {
			require.Equal(t, v.ID, e.To)
			total++
		}
	}
	require.Equal(t, len(p.Edges), total)
}

// checkShares requires that the ranges of a vertex partition the shards in order, that no range
// is empty, that the lengths of ranges differ by at most one, and that the number of slots is
// the largest parallelism of a vertex.
func checkShares(t require.TestingT, g *Graph, p *Plan) {
	slots := 0
	for _, v := range p.Vertices {
		want := p.Parallelism
		if g.Nodes[v.Chain[0].Node].Single {
			want = 1
		}
		require.Equal(t, want, v.Parallelism)
		require.Len(t, v.Ranges, want)
		next := 0
		for _, r := range v.Ranges {
			require.Equal(t, next, r.Lo)
			require.GreaterOrEqual(t, r.Len(), g.Shards/want)
			require.LessOrEqual(t, r.Len(), (g.Shards+want-1)/want)
			next = r.Hi
		}
		require.Equal(t, g.Shards, next)
		require.Equal(t, DefaultSlotGroup, v.SlotGroup)
		slots = max(slots, v.Parallelism)
	}
	require.Equal(t, slots, p.Slots)
}

// chainGraph returns a source followed by n maps.
func chainGraph(n int) *Graph {
	g := &Graph{Job: "chain", Shards: 128, Nodes: []Node{{Op: "Range", Schema: drawnSchema}}}
	for i := range n {
		g.Nodes = append(g.Nodes, Node{ID: NodeID(i + 1), Op: "Map", Schema: drawnSchema, Inputs: []Input{{From: NodeID(i)}}})
	}
	return g
}

// branchGraph returns a source with n branches, each an exchange and a sink.
func branchGraph(n int) *Graph {
	g := &Graph{Job: "branches", Shards: 128, Nodes: []Node{{Op: "Range", Schema: drawnSchema}}}
	for i := range n {
		id := NodeID(len(g.Nodes))
		g.Nodes = append(g.Nodes,
			Node{ID: id, Op: "GroupBy", Schema: drawnSchema, Inputs: []Input{{From: 0, Partitioner: Hash, Keys: []string{"k"}}}},
			Node{ID: id + 1, Op: "Collect", Name: fmt.Sprint(i), Sink: true, Inputs: []Input{{From: id}}})
	}
	return g
}

// TestCompileLarge requires that Compile takes linear time. With these 100,000 nodes or more,
// 10,000 under the race detector, quadratic time would mean hours.
func TestCompileLarge(t *testing.T) {
	n := 10 * many
	p, err := Compile(chainGraph(n), 4)
	require.NoError(t, err)
	require.Len(t, p.Vertices, 1)
	require.Len(t, p.Vertices[0].Chain, n+1)
	require.Empty(t, p.Edges)
	require.Less(t, len(p.Text()), 1000)

	p, err = Compile(branchGraph(n), 4)
	require.NoError(t, err)
	require.Len(t, p.Vertices, n+1)
	require.Len(t, p.Edges, n)
	require.NotEmpty(t, p.Text())

	// One node with many inputs, from a node with many columns.
	g := &Graph{Shards: 1, Nodes: []Node{{Op: "Range"}, {ID: 1, Op: "Union"}}}
	for i := range n {
		g.Nodes[0].Schema = append(g.Nodes[0].Schema, Column{Name: fmt.Sprint("c", i), Type: "int64"})
		g.Nodes[1].Inputs = append(g.Nodes[1].Inputs, Input{Partitioner: Hash, Keys: []string{fmt.Sprint("c", i)}})
	}
	p, err = Compile(g, 1)
	require.NoError(t, err)
	require.Len(t, p.In(1), n)
	require.NotEmpty(t, g.Text())
}

func BenchmarkCompile(b *testing.B) {
	for _, shape := range []struct {
		name string
		make func(n int) *Graph
	}{{"chain", chainGraph}, {"branches", branchGraph}} {
		for _, n := range []int{1000, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", shape.name, n), func(b *testing.B) {
				g := shape.make(n)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Compile(g, 8); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(g.Nodes)), "ns/node")
			})
		}
	}
}
