package plan

import "github.com/superstep-ml/superstep/shared/sharding"

// VertexID numbers the vertices of a plan in topological order, from 0.
type VertexID int

// Plan is a graph compiled for one parallelism: plain data without functions,
// locks or channels. It says what runs where. The code that runs it binds
// functions to its nodes.
type Plan struct {
	Job         string `json:"job"`
	Shards      int    `json:"shards"`
	Seed        uint64 `json:"seed"`
	Parallelism int    `json:"parallelism"`
	// Fingerprint is that of the graph the plan was compiled from.
	Fingerprint string `json:"fingerprint"`
	// Nodes are the graph's, by id, so that a plan can be read and run alone. They
	// are shared with the graph and not modified. Those that are not Needed stand in no
	// vertex.
	Nodes    []Node   `json:"nodes"`
	Vertices []Vertex `json:"vertices"`
	// Edges are ordered by To, the receiver's place in its chain, and Port.
	Edges  []Edge  `json:"edges"`
	Queues []Queue `json:"queues,omitempty"`
	// Slots is the number of slots the job needs: the largest parallelism of a
	// vertex, as subtask i of every vertex shares slot i.
	Slots int `json:"slots"`
}

// Vertex is a chain of operators that one goroutine per subtask runs. Chain[0] is
// the head; every other element's Parent is the index in Chain of the operator
// whose rows it gets, so a chain may branch.
type Vertex struct {
	ID          VertexID  `json:"id"`
	Name        string    `json:"name"`
	Chain       []Chained `json:"chain"`
	Parallelism int       `json:"parallelism"`
	// Ranges gives the shards of each subtask.
	Ranges []sharding.Range `json:"ranges"`
	// SlotGroup: vertices of one group share slots, subtask by subtask.
	SlotGroup string `json:"slot_group"`
	// Queue names the queue whose stages the chain holds; such vertices are
	// co-located and run as one gang.
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

// Mode says how an exchange hands rows on.
type Mode int

const (
	// Pipelined: rows flow on while the source still runs.
	Pipelined Mode = iota
	// Materialised: the receiver may have to wait for another input first, so
	// the exchange holds every run, in memory up to the budget, then on disk.
	Materialised
)
