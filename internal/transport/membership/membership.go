package membership

// Operation is what a rank does: its hash goes into messages, its text into errors.
// It is immutable, and made once for many operations of the same kind.
type Operation struct {
	Hash uint64
	Text string // "AllReduce "gradient" (4096 float32, sum)"
}

// State is where a rank of this process stands, for the detection of ranks that
// disagree and of groups that stand still.
type State struct {
	Rank     int
	Seq      uint64     // operations begun
	Op       *Operation // the one it is in, or nil between operations
	Progress uint64     // bytes moved so far; never falls
	Left     bool       // it begins no more operations, though its process stays; never taken back

	// Begun are the latest operations that it has begun, in any order; zeros where there
	// were fewer. Of two ranks that disagree one may have got through its operation and
	// into others, as a root does that only sends.
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
	Ranks   []int  // that it hosts
	Address string // where it accepts data connections, host:port
}
