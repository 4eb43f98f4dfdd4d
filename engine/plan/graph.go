package plan

// NodeID numbers the nodes of a graph in the order they were added, from 0.
type NodeID int

// Graph is what the user wrote: a job function's operators and the facts they
// rest on. It is plain data, without parallelism, addresses or paths of the
// machine beyond the arguments the user gave, so that two builds of one job can
// be compared by fingerprint. Inputs refer to earlier nodes only; the one
// exception is the feedback edge of a queue.
type Graph struct {
	Job    string `json:"job"`    // name given to Define, empty for an anonymous job
	Shards int    `json:"shards"` // S, a power of two
	Seed   uint64 `json:"seed"`
	Facts  []Fact `json:"facts,omitempty"` // in the order they were asked for
	Nodes  []Node `json:"nodes"`
	// Queues lists the iterative queues in the order they were added.
	Queues []Queue `json:"queues,omitempty"`
}

// Fact is something a job function learnt from outside its arguments: a file
// list with sizes, an inferred schema, the hash of in-memory data. It is
// resolved once, where the graph is first built, and taken from the graph
// wherever it is built again.
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

// Attr is one printable parameter of an operator, kept in the order given.
type Attr struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Node is one operator of the graph.
type Node struct {
	ID     NodeID   `json:"id"`
	Op     string   `json:"op"`             // kind of operator, such as "ReadCSV" or "Map"
	Name   string   `json:"name,omitempty"` // the user's label, if any
	Attrs  []Attr   `json:"attrs,omitempty"`
	Schema []Column `json:"schema,omitempty"` // of the rows it emits; none for sinks
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
	// Queue names the queue that the node belongs to. Stage is the node's part in it.
	Queue string    `json:"queue,omitempty"`
	Stage StageKind `json:"stage,omitempty"`
	// Order says how the node reduces floating-point values.
	Order Reduction `json:"order,omitempty"`
}

// Input is one incoming edge of a node. Its position in Node.Inputs is its port.
type Input struct {
	From        NodeID      `json:"from"`
	Partitioner Partitioner `json:"partitioner"`
	Keys        []string    `json:"keys,omitempty"` // columns of hash and range
	Role        Role        `json:"role,omitempty"`
	// Func is the symbol and line of a custom partitioner.
	Func string `json:"func,omitempty"`
}

// Partitioner says where the rows of an edge go.
type Partitioner int

const (
	// Forward keeps every row in its shard and in order.
	Forward Partitioner = iota
	// Rebalance sends row j of shard s to shard (s+j) mod S.
	Rebalance
	// Hash sends a row to the shard given by the hash of its keys.
	Hash
	// Range sends a row to a shard by splitters of its keys: shard order is key order.
	Range
	// Broadcast gives all rows to every subtask, one immutable copy per worker.
	Broadcast
	// Custom sends a row to the shard that a user function names.
	Custom
	// BySubtask connects stages of a queue, subtask to subtask; it carries
	// collective messages, not rows.
	BySubtask
)

// Role says what an edge is for.
type Role int

const (
	// Data edges carry the rows an operator processes, shard by shard.
	Data Role = iota
	// Side edges carry a broadcast variable: complete before the operator opens.
	Side
	// Control edges order the stages of a queue and carry no rows.
	Control
	// Feedback leads from the end of a queue's superstep to its beginning.
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
	// Send, Sum and Recv are the three stages of an AllReduce.
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
	// Communicate is a collective other than AllReduce, in one stage; the node's Op
	// says which.
	Communicate
)

// Reduction says what the bits of a floating-point reduction depend on.
type Reduction int

const (
	// NoReduction marks operators that reduce nothing across rows.
	NoReduction Reduction = iota
	// ShardTree reduces up the aligned tree over shards: the same bits at any parallelism.
	ShardTree
	// RankTree reduces whole buffers up the fold tree over subtasks: the bits depend on parallelism.
	RankTree
)

// Queue describes a queue apart from its stages.
type Queue struct {
	Name string `json:"name"`
	// MaxSupersteps is 0 where only the criterion ends the queue.
	MaxSupersteps int  `json:"max_supersteps,omitempty"`
	HasCriterion  bool `json:"has_criterion,omitempty"`
}
