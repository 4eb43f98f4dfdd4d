package plan

import (
	"fmt"
	"sort"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// DefaultSlotGroup is the slot group of every vertex: subtask i of each vertex
// of a job shares slot i.
const DefaultSlotGroup = "default"

// Compile turns a graph into the plan for one parallelism. It is a pure function
// of its arguments and takes time linear in the number of nodes and edges. The
// plan shares the nodes of the graph, so neither may be modified afterwards.
//
// Nodes that are not needed (see Needed) are not part of any vertex.
//
// Parallelism. A node runs on parallelism subtasks, or on one if it is Single.
// Subtask i of a vertex owns the i-th range of shards.
//
// Chaining. A node joins its producer's vertex, and runs in its goroutine, if
// three conditions hold: apart from feedback, its only input is a forward data
// or control edge; the node and its producer have the same parallelism; and they
// belong to the same queue or to no queue. If a producer has several such
// consumers, the chain becomes a tree. A node with side inputs or several data
// inputs begins a new vertex. In its producer's vertex it would block the head
// while it waits for another input, and that input may depend on the same head.
// A forward edge that is not chained is an exchange that keeps shards and order.
//
// Queues. By-subtask edges are never chained, so the stages between two
// communications form one vertex. Send is the last node of its vertex, sum is a
// vertex of its own, and recv is the first node of the next vertex. Queue-init
// begins the first vertex of a queue, and queue-close ends the last one.
//
// Mode. An edge is materialised if its receiver may have to read another input to the end
// before it reads the rows of this edge. Such edges are side inputs, which must be complete
// before the receiver opens, and data inputs of nodes that have other data or side inputs. The
// first of several data inputs is materialised too, as operators read their inputs in turn,
// shard by shard. All other edges are pipelined. The receiver of a pipelined edge thus waits
// for no other input, so pipelined edges form a forest, and no diamond in the graph can
// deadlock, whatever the size of buffers.
func Compile(g *Graph, parallelism int) (*Plan, error) {
	if err := g.Validate(); err != nil {
		return nil, err
	}
	if parallelism < 1 {
		return nil, fmt.Errorf("parallelism %d: want at least 1; set it with --parallelism", parallelism)
	}
	if parallelism > g.Shards {
		return nil, fmt.Errorf("parallelism %d is above the number of shards, %d, so that some subtasks would own none: lower --parallelism or raise --shards, which is part of the result",
			parallelism, g.Shards)
	}
	c := compiler{
		g:      g,
		p:      parallelism,
		all:    splitAll(g.Shards, parallelism),
		one:    splitAll(g.Shards, 1),
		needed: Needed(g.Nodes),
		vertex: make([]VertexID, len(g.Nodes)),
		index:  make([]int, len(g.Nodes)),
	}
	c.chain()
	c.exchange()
	p := &Plan{
		Job:         g.Job,
		Shards:      g.Shards,
		Seed:        g.Seed,
		Parallelism: parallelism,
		Fingerprint: g.Fingerprint(),
		Nodes:       g.Nodes,
		Vertices:    c.vertices,
		Edges:       c.edges,
		Queues:      g.Queues,
	}
	for i := range g.Queues {
		p.Resumption = append(p.Resumption, ResumptionOf(g.Nodes, g.Queues[i].Name))
	}
	for i := range p.Vertices {
		p.Slots = max(p.Slots, p.Vertices[i].Parallelism)
		p.Vertices[i].Name = vertexName(p.Nodes, p.Vertices[i].Chain)
	}
	return p, nil
}

// compiler is the state of one Compile of a valid graph.
type compiler struct {
	g *Graph
	p int
	// all and one are the ranges of shards at parallelism p and 1. The vertices
	// share these slices to save memory. This is safe, as a plan is not modified.
	all, one []sharding.Range
	vertices []Vertex
	edges    []Edge
	needed   []bool // by node
	// vertex[i] is the vertex of node i. index[i] is the position of node i in its chain.
	vertex []VertexID
	index  []int
}

// chain assigns every needed node to a vertex. Nodes come in topological order,
// so the producer of a node is already assigned. Vertices are numbered in the
// order of their heads, so their order is topological too.
func (c *compiler) chain() {
	for i := range c.g.Nodes {
		n := &c.g.Nodes[i]
		if !c.needed[i] {
			continue
		}
		if port, ok := c.chained(n); ok {
			from := n.Inputs[port].From
			v := &c.vertices[c.vertex[from]]
			c.vertex[i], c.index[i] = v.ID, len(v.Chain)
			v.Chain = append(v.Chain, Chained{Node: n.ID, Parent: c.index[from], Port: port})
			continue
		}
		id := VertexID(len(c.vertices))
		c.vertex[i], c.index[i] = id, 0
		v := Vertex{
			ID:          id,
			Chain:       []Chained{{Node: n.ID, Parent: -1}},
			Parallelism: c.p,
			Ranges:      c.all,
			SlotGroup:   DefaultSlotGroup,
			Queue:       n.Queue,
		}
		if n.Single {
			v.Parallelism, v.Ranges = 1, c.one
		}
		c.vertices = append(c.vertices, v)
	}
}

// chained reports whether n joins its producer's vertex, and returns the port of
// the input from the producer.
func (c *compiler) chained(n *Node) (port int, ok bool) {
	port = -1
	for k := range n.Inputs {
		if n.Inputs[k].Role == Feedback {
			continue
		}
		if port >= 0 {
			return 0, false
		}
		port = k
	}
	if port < 0 {
		return 0, false
	}
	in := &n.Inputs[port]
	from := &c.g.Nodes[in.From]
	// Side edges are broadcast, so a forward edge is data or control.
	ok = in.Partitioner == Forward &&
		c.parallelism(from) == c.parallelism(n) && from.Queue == n.Queue
	return port, ok
}

func (c *compiler) parallelism(n *Node) int {
	if n.Single {
		return 1
	}
	return c.p
}

// exchange adds an edge for every input that is not chained. The edges are
// ordered by receiving vertex, then by the receiver's position in the chain,
// then by port.
func (c *compiler) exchange() {
	for i := range c.vertices {
		v := &c.vertices[i]
		for k, member := range v.Chain {
			n := &c.g.Nodes[member.Node]
			rows := 0 // inputs that carry rows
			for _, in := range n.Inputs {
				if carriesRows(&in) {
					rows++
				}
			}
			for port := range n.Inputs {
				in := &n.Inputs[port]
				if k > 0 && port == member.Port {
					continue
				}
				e := Edge{
					From: c.vertex[in.From], FromNode: in.From,
					To: v.ID, ToNode: n.ID, Port: port,
					Partitioner: in.Partitioner, Keys: in.Keys, Role: in.Role,
				}
				if carriesRows(in) && (rows > 1 || in.Role == Side) {
					e.Mode = Materialised
				}
				c.edges = append(c.edges, e)
			}
		}
	}
}

func carriesRows(in *Input) bool {
	return (in.Role == Data || in.Role == Side) && in.Partitioner != BySubtask
}

func splitAll(shards, p int) []sharding.Range {
	ranges := make([]sharding.Range, p)
	for i := range ranges {
		ranges[i] = sharding.Split(shards, p, i)
	}
	return ranges
}

// In returns the edges into vertex v, ordered by the receiver's position in the
// chain, then by port. The result is a part of p.Edges and must not be modified.
func (p *Plan) In(v VertexID) []Edge {
	lo := sort.Search(len(p.Edges), func(i int) bool { return p.Edges[i].To >= v })
	hi := sort.Search(len(p.Edges), func(i int) bool { return p.Edges[i].To > v })
	return p.Edges[lo:hi:hi]
}
