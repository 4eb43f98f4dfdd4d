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
}

// Peer is one process of the group.
type Peer struct {
	Ranks   []int  // that it hosts
	Address string // where it accepts data connections, host:port
}
