package membership

// Operation describes what a rank is doing: its hash goes into messages, its text into errors.
// It is immutable, and made once for many operations of the same kind.
type Operation struct {
	Hash uint64
	Text string // "AllReduce "gradient" (4096 float32, sum)"
}

// State is the state of a rank of this process, for finding ranks that disagree and groups that
// stand still.
type State struct {
	Rank     int
	Seq      uint64     // operations begun
	Op       *Operation // the one it is in, or nil between operations
	Progress uint64     // bytes moved so far; never decreases
	Left     bool       // it begins no more operations, though its process stays; never taken back

	// Begun are the latest operations that it has begun, in any order; zeros where there were
	// fewer. They are needed because one of two ranks that disagree may have finished its
	// operation and begun others, like a root that only sends.
	Begun [RecentOps]Begun
}

// RecentOps is how many operations a rank remembers.
const RecentOps = 8

// Begun is an operation that a rank has begun, and its number.
type Begun struct {
	Seq uint64
	Op  *Operation
}

// Peer is one process of the group.
type Peer struct {
	Ranks   []int  // the ranks that it hosts
	Address string // where it accepts data connections, host:port
}
