package mesh

import (
	"sync"
	"sync/atomic"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// Group is what a mesh needs of a membership: the first failure, told to all.
type Group interface {
	// Fail ends the group for a cause, tells all its processes, and returns the
	// cause of whoever was first.
	Fail(err error) error
	// Failed is closed when the group has ended for a cause, which Err returns.
	Failed() <-chan struct{}
	Err() error
}

// standing is where a rank stands: written by the rank, read by whoever asks. The
// rank never waits for readers: the version is odd while it writes, and a reader
// that sees an odd or a changed version looks again.
type standing struct {
	version atomic.Uint64
	seq     atomic.Uint64
	op      atomic.Pointer[Operation]
	moved   atomic.Uint64 // payload bytes sent and received

	begun [membership.RecentOps]struct { // the latest operations, at their number modulo
		seq atomic.Uint64
		op  atomic.Pointer[Operation]
	}
	_ [64]byte // keeps the counters of different ranks in different cache lines
}

func (s *standing) begin(seq uint64, op *Operation) {
	s.version.Add(1)
	s.seq.Store(seq)
	s.op.Store(op)
	b := &s.begun[seq%uint64(len(s.begun))]
	b.seq.Store(seq)
	b.op.Store(op)
	s.version.Add(1)
}

func (s *standing) end() {
	s.version.Add(1)
	s.op.Store(nil)
	s.version.Add(1)
}

// read returns a sequence number and an operation that belong together. A rank
// that keeps changing while it is looked at is reported as between operations.
func (s *standing) read() (seq uint64, op *Operation) {
	for range 100 {
		v := s.version.Load()
		seq, op = s.seq.Load(), s.op.Load()
		if v&1 == 0 && s.version.Load() == v {
			return seq, op
		}
	}
	return seq, nil
}

// state is where rank stands, for the membership. What it has begun belongs together
// number by number, and may be later than the operation that it is said to be in.
func (s *standing) state(rank int) membership.State {
	seq, op := s.read()
	now := membership.State{Rank: rank, Seq: seq, Op: op, Progress: s.moved.Load()}
	for i := range s.begun {
		b := &s.begun[i]
		for range 100 {
			v, n, o := s.version.Load(), b.seq.Load(), b.op.Load()
			if v&1 == 0 && s.version.Load() == v {
				now.Begun[i] = membership.Begun{Seq: n, Op: o}
				break
			}
		}
	}
	return now
}

// during is the operation in words, "" between operations.
func (s *standing) during() string {
	seq, op := s.read()
	if op == nil {
		return ""
	}
	return membership.Describe(seq, op)
}

// ledger remembers what the first rank of this process to begin an operation
// began, so that ranks of one process that disagree learn it when they begin and
// not from a message, or from the lack of one. It remembers the latest numbers
// only: a rank that is far behind is compared by the messages it gets.
type ledger [32]struct {
	mu   sync.Mutex
	seq  uint64
	rank int
	op   *Operation
}

// enter compares the operation with that of the rank that began this number
// first, and returns a *membership.MismatchError where they differ. Operations that
// only some ranks take part in have the hash 0, and are not compared.
func (l *ledger) enter(rank int, seq uint64, op *Operation) error {
	if op.Hash == 0 {
		return nil
	}
	e := &l[seq%uint64(len(l))]
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case seq > e.seq:
		e.seq, e.rank, e.op = seq, rank, op
	case seq == e.seq && op.Hash != e.op.Hash:
		return &membership.MismatchError{
			Rank: e.rank, Doing: membership.Describe(seq, e.op),
			Other: rank, OtherDoing: membership.Describe(seq, op),
		}
	}
	return nil
}
