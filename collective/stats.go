package collective

import (
	"strconv"
	"time"
)

// Stats counts what one rank did. Read it from the goroutine that uses the rank's end, or
// after that goroutine has finished.
type Stats struct {
	Calls int64 // AllReduce operations received

	// Bytes that collectives move away from this rank, except barriers and broadcasts of
	// single values. In an AllReduce these are its input to the parts that others fold
	// (once for each node of a forest) and the results that it gives to others. In a Sparse
	// one, the bytes are counted without zeros, see packedBytes. They are the same whether
	// ranks share memory or send messages. In a group of several processes, the lowest rank
	// of a process counts what its ranks send together.
	Bytes int64
	// Results is the part of Bytes for results given to others.
	Results int64
	// Whole counts the small operations that one rank folded for all.
	Whole int64
	// Sparse counts the AllReduce operations that left zeros away.
	Sparse int64

	Send time.Duration // posting
	Sum  time.Duration // folding
	Recv time.Duration // waiting for other ranks, and for the result

	Barriers   int64 // Barrier operations begun
	Broadcasts int64 // BroadcastBool and BroadcastInt64 operations begun
}

// Add adds the counts of o.
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

// Stats returns what this rank did so far, all operations taken together.
func (c *Comm) Stats() Stats { return c.stats }

// Description says how a group carries out its reductions, for plans and run
// records.
type Description struct {
	Algorithm string // of the program: "direct"
	Executor  string // "shared memory"
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

// Describe says how this group carries out its collectives. If there are several algorithms,
// it names that of the latest collective.
func (c *Comm) Describe() Description {
	d := Description{Algorithm: "direct", Executor: "shared memory", Ranks: c.Size()}
	if c.by != "" {
		d.Algorithm, d.Executor = c.by, "messages"
	}
	if c.group.net != nil {
		d.Executor = "TCP"
	}
	return d
}

// now returns the time since the group was made. It is cheaper than time.Now, which also reads
// the wall clock.
func (g *LocalGroup) now() time.Duration { return time.Since(g.began) }
