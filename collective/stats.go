package collective

import (
	"strconv"
	"time"
)

// Stats counts the operations of one rank, their bytes and their time. Read it from the
// goroutine that uses the rank's Comm, or after that goroutine has finished.
type Stats struct {
	Calls int64 // AllReduce operations whose result was received

	// Bytes counts the bytes that collectives move away from this rank. Barriers and broadcasts
	// of single values are not counted. For an AllReduce, Bytes counts the rank's input to the
	// parts that other ranks fold (once for each node of a forest) and the results that the
	// rank passes to other ranks. In a Sparse AllReduce that omits zeros, the bytes of the
	// packed form count. If ranks share memory, the bytes that they read from and write to each
	// other's buffers count. In a group of several processes, the lowest rank of a process
	// counts the bytes that the process sends for all its ranks.
	Bytes int64
	// Results is the part of Bytes for results passed to other ranks.
	Results int64
	// Whole counts the small AllReduce operations that one rank folded for all ranks.
	Whole int64
	// Sparse counts the AllReduce operations that omitted zeros.
	Sparse int64

	Send time.Duration // time in Send, which posts the rank's part
	Sum  time.Duration // time spent folding
	Recv time.Duration // time spent waiting for other ranks and for the result

	Barriers   int64 // Barrier operations begun
	Broadcasts int64 // BroadcastBool and BroadcastInt64 operations begun
}

// Add adds the counts and times of o to s.
func (s *Stats) Add(o Stats) {
	s.Calls += o.Calls
	s.Bytes += o.Bytes
	s.Results += o.Results
	s.Whole += o.Whole
	s.Sparse += o.Sparse
	s.Send += o.Send
	s.Sum += o.Sum
	s.Recv += o.Recv
	s.Barriers += o.Barriers
	s.Broadcasts += o.Broadcasts
}

// Stats returns the statistics of all operations of this rank so far.
func (c *Comm) Stats() Stats { return c.stats }

// Description describes how a group carries out its collectives, for plans and run records.
type Description struct {
	Algorithm string // for example "direct"
	Executor  string // "shared memory", "messages" or "TCP"
	Ranks     int
}

// String returns, for example, "direct over shared memory, 8 ranks".
func (d Description) String() string {
	ranks := " ranks"
	if d.Ranks == 1 {
		ranks = " rank"
	}
	return d.Algorithm + " over " + d.Executor + ", " + strconv.Itoa(d.Ranks) + ranks
}

// Describe returns how this group carries out its collectives. If the group uses several
// algorithms, the result names the algorithm of the latest collective.
func (c *Comm) Describe() Description {
	d := Description{Algorithm: "direct", Executor: "shared memory", Ranks: c.Size()}
	if c.algorithm != "" {
		d.Algorithm, d.Executor = c.algorithm, "messages"
	}
	if c.group.net != nil {
		d.Executor = "TCP"
	}
	return d
}

// now returns the time since the group was made. It is cheaper than time.Now, which also reads
// the wall clock.
func (g *LocalGroup) now() time.Duration { return time.Since(g.began) }
