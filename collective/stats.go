package collective

import (
	"strconv"
	"time"
)

// Stats counts what one rank did. Read it from the goroutine that uses the rank's
// end, or after that has finished.
type Stats struct {
	Calls int64 // AllReduce operations received

	// Bytes that the algorithms of all collectives but barriers and broadcasts of
	// single values move away from this rank. Of an AllReduce these are its partial
	// values of what others fold (a forest has several), and the results it gives the
	// others; of a Sparse one what these take without their zeros, see packedBytes. It is the same whether messages or shared memory carry them. What the ranks
	// of a process of several send to other processes together, the lowest of them counts.
	Bytes int64
	// Results is the part of Bytes that is results given to others.
	Results int64
	// Whole counts the operations so small that one rank folded them for all.
	Whole int64
	// Sparse counts the AllReduce operations that left zeros away.
	Sparse int64

	Send time.Duration // posting
	Sum  time.Duration // folding
	Recv time.Duration // waiting for other ranks, and for the result

	Barriers   int64 // Barrier operations begun
	Broadcasts int64 // BroadcastBool and BroadcastInt64 operations begun
}

// Add accumulates o.
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

// String is, for example, "direct over shared memory, 8 ranks".
func (d Description) String() string {
	ranks := " ranks"
	if d.Ranks == 1 {
		ranks = " rank"
	}
	return d.Algorithm + " over " + d.Executor + ", " + strconv.Itoa(d.Ranks) + ranks
}

// Describe says how this group carries out its collectives: by the algorithm of the
// latest, where it may be one of several.
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

// now is the time since the group was made: cheaper than time.Now, which also
// reads the wall clock.
func (g *LocalGroup) now() time.Duration { return time.Since(g.began) }
