package membership

// Operation describes a kind of operation of ranks. Messages contain its hash, and errors
// contain its text. An Operation is immutable; callers make it once for many operations of the
// same kind.
type Operation struct {
	Hash uint64
	Text string // text in errors, such as "AllReduce "gradient" (4096 float32, sum)"
}

// State is the state of a rank of this process. The coordinator uses it to detect ranks that
// disagree and groups that make no progress.
type State struct {
	Rank     int
	Seq      uint64     // number of the latest operation that the rank has begun
	Op       *Operation // operation in which the rank is; nil between operations
	Progress uint64     // number of bytes that the rank has sent and received so far; never decreases
	Left     bool       // the rank begins no more operations, although its process stays in the group; never reset

	// Begun has the latest operations that the rank has begun, in any order. If the rank has
	// begun fewer than RecentOps, the other elements are zero. These operations are needed
	// since one of two ranks that disagree may have finished its operation and begun others; an
	// example is a root that only sends.
	Begun [RecentOps]Begun
}

// RecentOps is the number of operations in State.Begun.
const RecentOps = 8

// Begun is an operation that a rank has begun, with its sequence number.
type Begun struct {
	Seq uint64
	Op  *Operation
}

// Peer is one process of the group.
type Peer struct {
	Ranks   []int  // ranks that the process hosts
	Address string // address, host:port, at which the process accepts data connections
}
