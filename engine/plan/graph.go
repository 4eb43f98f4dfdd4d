package plan

// NodeID is the number of a node. The nodes of a graph are numbered from 0 in the
// order in which they were added.
type NodeID int

// Graph describes a job: the operators that the job function added and the facts that they
// depend on. It is plain data. It has no parallelism, and no addresses or paths of a machine
// except in the arguments that the user gave. So two builds of one job can be compared by
// fingerprint. Inputs come from earlier nodes; only the feedback edges of queues come from
// later nodes.
type Graph struct {
	Job    string `json:"job"`    // name given to Define, empty for an anonymous job
	Shards int    `json:"shards"` // the number of shards, a power of two
	Seed   uint64 `json:"seed"`
	Facts  []Fact `json:"facts,omitempty"` // in the order in which the job function requested them
	Nodes  []Node `json:"nodes"`
	// Queues lists the iterative queues in the order they were added.
	Queues []Queue `json:"queues,omitempty"`
}

// Fact is something that a job function learned from another source than its arguments: for
// example a list of files with their sizes, an inferred schema, or the hash of in-memory data.
// Its value is determined once, by the process that first builds the graph. Processes that
// build the graph again take the value from that graph.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Column describes one column; Type is the text form of its Arrow type, such as
// "float64", "utf8" or "vector[4]".
type Column struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	Nullable bool   `json:"nullable,omitempty"`
}

// Attr is one parameter of an operator, as printable text.
type Attr struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Node is one operator of the graph.
type Node struct {
	ID     NodeID   `json:"id"`
	Op     string   `json:"op"`               // kind of operator, such as "ReadCSV" or "Map"
	Name   string   `json:"name,omitempty"`   // the user's label, if any
	Attrs  []Attr   `json:"attrs,omitempty"`  // in the order in which they were given
	Schema []Column `json:"schema,omitempty"` // columns of the rows it emits; empty for a sink
	Inputs []Input  `json:"inputs,omitempty"`
	// Func is the symbol and line of the bound user function, such as
	// "main.parse main.go:31"; it is part of the fingerprint.
	Func string `json:"func,omitempty"`
	// Site is the user's source line that added the node, "file.go:31"; it is for
	// messages and is not part of the fingerprint.
	Site string `json:"site,omitempty"`
	// Within names the part of the job that the node belongs to, such as "stage 2 (kmeans)",
	// if any; it is for messages and is not part of the fingerprint.
	Within string `json:"within,omitempty"`
	// Single says that one subtask, owning every shard, runs the node.
	Single bool `json:"single,omitempty"`
	// Sink says that the node's results are committed when the job succeeds.
	Sink bool `json:"sink,omitempty"`
	// Queue names the queue that the node belongs to, if any. Stage is the node's role in
	// that queue.
	Queue string    `json:"queue,omitempty"`
	Stage StageKind `json:"stage,omitempty"`
	// Order says how the node reduces floating-point values.
	Order Reduction `json:"order,omitempty"`
	// RankState says that the node, a stage of a queue, keeps a state for each subtask that cannot
	// be divided. It follows from Func and is not part of the fingerprint.
	RankState bool `json:"rank_state,omitempty"`
	// Unkept says that the node, a stage of a queue, has a state that cannot be saved. It follows from
	// Func and is not part of the fingerprint.
	Unkept bool `json:"unkept,omitempty"`
	// NamedAfterFunc says that Name, of a stage of a queue, is the name of a function, which may be a closure
	// that the compiler has numbered. It is not part of the fingerprint, which has Func.
	NamedAfterFunc bool `json:"named_after_func,omitempty"`
}

// OneParallelism returns the first needed node that binds a run to one parallelism, or nil if there
// is none: a node whose result depends on parallelism, or whose state cannot be divided.
func OneParallelism(nodes []Node) *Node {
	needed := Needed(nodes)
	for i := range nodes {
		if needed[i] && nodes[i].bound() {
			return &nodes[i]
		}
	}
	return nil
}

// bound reports whether the node binds its queue, or its job, to one parallelism.
func (n *Node) bound() bool { return n.Order == RankTree || n.RankState }

// Input is one incoming edge of a node. Its position in Node.Inputs is its port.
type Input struct {
	From        NodeID      `json:"from"`
	Partitioner Partitioner `json:"partitioner"`
	Keys        []string    `json:"keys,omitempty"` // key columns, for Hash and Range
	Role        Role        `json:"role,omitempty"`
	// Func is the symbol and line of the user function of a Custom partitioner.
	Func string `json:"func,omitempty"`
}

// Partitioner says where the rows of an edge go.
type Partitioner int

const (
	// Forward keeps every row in its shard and in order.
	Forward Partitioner = iota
	// Rebalance sends row j of shard s to shard (s+j) mod S, where S is the number of shards.
	Rebalance
	// Hash sends a row to the shard given by the hash of its keys.
	Hash
	// Range sends a row to the shard whose range of keys includes the row's keys. The order
	// of the shards is the order of their keys.
	Range
	// Broadcast gives all rows to every subtask, one immutable copy per worker.
	Broadcast
	// Custom sends a row to the shard that a user function returns.
	Custom
	// BySubtask connects the subtasks of one stage of a queue with the subtasks of the
	// next stage. It carries messages of collectives, not rows.
	BySubtask
)

// Role says what an edge is for.
type Role int

const (
	// Data edges carry the rows an operator processes, shard by shard.
	Data Role = iota
	// Side edges carry a broadcast variable, which is complete before the operator opens.
	Side
	// Control edges order the stages of a queue and carry no rows.
	Control
	// Feedback edges lead from the end of a superstep, or of a round of an inner loop, back to
	// its beginning.
	Feedback
)

// StageKind says what part of a queue a node is.
type StageKind int

const (
	// NoStage marks a node outside any queue.
	NoStage StageKind = iota
	// QueueInit takes the queue's partitioned and broadcast data.
	QueueInit
	// Compute runs a user function on every subtask.
	Compute
	// Send is the first of the three stages of an AllReduce: Send, Sum and Recv.
	Send
	// Sum reduces the subtask's own part of the buffer.
	Sum
	// Recv gathers the reduced pieces.
	Recv
	// Criterion decides on subtask 0 whether the queue stops.
	Criterion
	// QueueClose turns the queue's state into rows after the last superstep.
	QueueClose
	// RepeatBegin and RepeatEnd bracket the stages of an inner loop.
	RepeatBegin
	// RepeatEnd closes an inner loop; its feedback edge leads to RepeatBegin.
	RepeatEnd
	// Communicate is a collective other than AllReduce, in one stage. The node's Op
	// names the collective.
	Communicate
)

// Reduction says in which order floating-point values are reduced, and thus what the bits
// of the result depend on.
type Reduction int

const (
	// NoReduction marks operators that reduce nothing across rows.
	NoReduction Reduction = iota
	// ShardTree reduces along the aligned tree over shards. The bits of the result are the
	// same at any parallelism.
	ShardTree
	// RankTree reduces whole buffers along the fold tree over subtasks. The bits of the
	// result depend on the parallelism.
	RankTree
)

// Queue describes a queue. Its stages are the nodes whose field Queue has its name.
type Queue struct {
	Name string `json:"name"`
	// MaxSupersteps is 0 if only the criterion ends the queue.
	MaxSupersteps int  `json:"max_supersteps,omitempty"`
	HasCriterion  bool `json:"has_criterion,omitempty"`
}
