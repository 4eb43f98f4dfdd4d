package mesh

import (
	"sync"
	"sync/atomic"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// Group has those methods of a membership that a mesh needs. It decides which failure was
// first, and reports that failure to all processes.
type Group interface {
	// Fail ends the group because of err and reports it to all processes of the group. It
	// returns the group's cause: the first failure, which may not be err.
	Fail(err error) error
	// Failed returns a channel that is closed when the group has failed. Err returns the
	// group's cause, or nil if the group has not failed.
	Failed() <-chan struct{}
	Err() error
}

// opTracker records the current operation of a rank. It is a seqlock, so that the rank writes it
// without waiting for readers. The version is odd during a write; a reader that sees an odd or
// a changed version reads again.
type opTracker struct {
	version      atomic.Uint64
	seq          atomic.Uint64
	op           atomic.Pointer[Operation]
	payloadBytes atomic.Uint64 // number of payload bytes sent and received

	begun [membership.RecentOps]struct { // the latest operations; operation seq is at index seq modulo RecentOps
		seq atomic.Uint64
		op  atomic.Pointer[Operation]
	}
	_ [64]byte // keeps the counters of different ranks in different cache lines
}

func (s *opTracker) begin(seq uint64, op *Operation) {
	s.version.Add(1)
	s.seq.Store(seq)
	s.op.Store(op)
	b := &s.begun[seq%uint64(len(s.begun))]
	b.seq.Store(seq)
	b.op.Store(op)
	s.version.Add(1)
}

func (s *opTracker) end() {
	s.version.Add(1)
	s.op.Store(nil)
	s.version.Add(1)
}

// read returns the current operation and its sequence number. op is nil if the rank is in no
// operation, or if 100 reads gave no consistent pair.
func (s *opTracker) read() (seq uint64, op *Operation) {
	for range 100 {
		v := s.version.Load()
		seq, op = s.seq.Load(), s.op.Load()
		if v&1 == 0 && s.version.Load() == v {
			return seq, op
		}
	}
	return seq, nil
}

// state returns the state of a rank for the membership. Each element of Begun is consistent,
// but may be an operation that is later than the operation in Op.
func (s *opTracker) state(rank int) membership.State {
	seq, op := s.read()
	now := membership.State{Rank: rank, Seq: seq, Op: op, Progress: s.payloadBytes.Load()}
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

// during returns a text that describes the current operation, or "" between operations.
func (s *opTracker) during() string {
	seq, op := s.read()
	if op == nil {
		return ""
	}
	return membership.Describe(seq, op)
}

// ledger has, for each of the latest 32 sequence numbers, the first operation that a rank of
// this process began with this number. So a disagreement of ranks of one process is detected
// when they begin their operations, and not only by a message of another operation or by a
// timeout. If a rank is more than 32 operations behind, its disagreement is detected only by
// the messages that it receives.
type ledger [32]struct {
	mu   sync.Mutex
	seq  uint64
	rank int
	op   *Operation
}

// enter compares op, which the given rank begins with number seq, with the first operation that
// a rank began with this number. It returns a *membership.MismatchError if the hashes differ.
// An operation in which only some ranks take part has the hash 0, and is not compared.
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
