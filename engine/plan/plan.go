package plan

import "github.com/superstep-ml/superstep/shared/sharding"

// VertexID is the number of a vertex. The vertices of a plan are numbered from 0 in
// topological order.
type VertexID int

// Plan is a graph compiled for one parallelism. It says which operators run in which
// vertices and subtasks, and how rows get from one vertex to another. It is plain data
// without functions, locks or channels: the code that runs it binds functions to its
// nodes.
type Plan struct {
	Job         string `json:"job"`
	Shards      int    `json:"shards"`
	Seed        uint64 `json:"seed"`
	Parallelism int    `json:"parallelism"`
	// Fingerprint is the fingerprint of the graph from which the plan was compiled.
	Fingerprint string `json:"fingerprint"`
	// Nodes are all nodes of the graph, by id, so that a plan can be read and run
	// without the graph. They are shared with the graph and must not be modified. Nodes
	// that are not needed (see Needed) are in no vertex.
	Nodes    []Node   `json:"nodes"`
	Vertices []Vertex `json:"vertices"`
	// Edges are ordered by To, then by the receiver's position in its chain, then by Port.
	Edges  []Edge  `json:"edges"`
	Queues []Queue `json:"queues,omitempty"`
	// Resumption says of each queue where it continues from a saved state.
	Resumption []Resumption `json:"resumption,omitempty"`
	// Slots is the number of slots that the job needs. It is the largest parallelism of
	// a vertex, as the i-th subtasks of all vertices share slot i.
	Slots int `json:"slots"`
}

// Vertex is a chain of operators that one goroutine per subtask runs. Chain[0] is
// the head. Every other element gets its rows from the operator at index Parent of
// Chain. Several elements may have the same Parent, so a chain may be a tree.
type Vertex struct {
	ID          VertexID  `json:"id"`
	Name        string    `json:"name"`
	Chain       []Chained `json:"chain"`
	Parallelism int       `json:"parallelism"`
	// Ranges gives the shards of each subtask.
	Ranges []sharding.Range `json:"ranges"`
	// SlotGroup names the slot group. The i-th subtasks of all vertices in a group share
	// a slot.
	SlotGroup string `json:"slot_group"`
	// Queue names the queue whose stages the chain holds, if any. The vertices of a
	// queue are co-located and run as one gang.
	Queue string `json:"queue,omitempty"`
}

// Chained is one operator of a vertex.
type Chained struct {
	Node   NodeID `json:"node"`
	Parent int    `json:"parent"` // index in Chain, -1 for the head
	// Port is the input of this operator that Parent feeds; 0 for the head.
	Port int `json:"port,omitempty"`
}

// Edge is an exchange between two vertices.
type Edge struct {
	From        VertexID    `json:"from"`
	FromNode    NodeID      `json:"from_node"` // member of From's chain that emits
	To          VertexID    `json:"to"`
	ToNode      NodeID      `json:"to_node"` // member of To's chain that receives: its head unless Role is Feedback
	Port        int         `json:"port"`    // index in the receiving node's Inputs
	Partitioner Partitioner `json:"partitioner"`
	Keys        []string    `json:"keys,omitempty"`
	Role        Role        `json:"role"`
	Mode        Mode        `json:"mode"`
}

// Mode says when an exchange passes rows to the receiver.
type Mode int

const (
	// Pipelined means that rows reach the receiver while the sender still runs.
	Pipelined Mode = iota
	// Materialised means that the exchange keeps all rows, in memory up to the budget and
	// then on disk, as the receiver may have to read another input to the end first.
	Materialised
)
