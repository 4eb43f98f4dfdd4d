package mesh

import (
	"sync"
	"sync/atomic"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// Group is the part of a membership that a mesh needs: it tells the first failure to all.
type Group interface {
	// Fail ends the group for a cause, tells all its processes, and returns the first cause.
	Fail(err error) error
	// Failed returns a channel that is closed when the group has ended for a cause; Err returns
	// the cause.
	Failed() <-chan struct{}
	Err() error
}

// standing is the current operation of a rank, a seqlock: the rank writes it without waiting
// for readers. The version is odd during a write, and a reader that sees an odd or a changed
// version reads again.
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

// read returns a consistent pair of sequence number and operation. A rank that keeps changing
// during the read is reported as between operations.
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

// state returns the state of a rank for the membership. Each entry of the begun operations is
// consistent, but they may be later than the current operation in the state.
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

// during returns the operation in words, "" between operations.
func (s *standing) during() string {
	seq, op := s.read()
	if op == nil {
		return ""
	}
	return membership.Describe(seq, op)
}

// ledger remembers the operation that the first rank of this process began under each number.
// So ranks of one process that disagree find out when they begin, and not by a message or the
// lack of one. It has only the latest numbers: a rank that is far behind is compared by the
// messages that it gets.
type ledger [32]struct {
	mu   sync.Mutex
	seq  uint64
	rank int
	op   *Operation
}

// enter compares the operation with that of the rank that began this number first, and returns
// a *membership.MismatchError if they differ. Operations of only some ranks have the hash 0,
// and are not compared.
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
