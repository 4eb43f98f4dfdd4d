package task

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// ends records which source shards of an edge are settled: they have ended, and all rows that
// they sent to this process are stored. All inboxes of the edge share one ends, as most source
// shards send nothing to most inboxes.
type ends struct {
	src sharding.Range // source shards
	// aligned says that a destination shard gets rows only from the source shard
	// with the same number.
	aligned bool
	fail    func(err error)

	settled atomic.Int64 // all source shards below this one are settled

	mu      sync.Mutex
	sources []sourceState
	inboxes []*inbox
}

// sourceState counts, for a source shard, the messages that have rows, and the rows.
type sourceState struct {
	stored sent
	sent   sent // what the source shard has sent; known once it has ended
	ended  bool
}

func (s *sourceState) settled() bool { return s.ended && s.stored.messages == s.sent.messages }

func newEnds(src sharding.Range, aligned bool, fail func(error)) *ends {
	e := &ends{src: src, aligned: aligned, fail: fail, sources: make([]sourceState, src.Len())}
	e.settled.Store(int64(src.Lo))
	return e
}

var _ transport.Receiver = (*ends)(nil)

// Receive handles a message that ends a source shard.
func (e *ends) Receive(m transport.Message) {
	defer m.Release()
	if !e.src.Contains(m.Shard) || m.Rows != nil || !m.Last {
		e.fail(fmt.Errorf("received rows of source shard %d where ends of %v are taken", m.Shard, e.src))
		return
	}
	if err := e.count(&m); err != nil {
		e.fail(err)
	}
}

// count counts a message that ends its source shard or whose rows are stored.
func (e *ends) count(m *transport.Message) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &e.sources[m.Shard-e.src.Lo]
	if s.settled() || s.ended && m.Last {
		return fmt.Errorf("received message %d of source shard %d after its end: the transport repeated or lost messages", m.Seq, m.Shard)
	}
	if m.Rows != nil {
		s.stored.messages++
		s.stored.rows += m.Rows.NumRows()
	}
	if m.Last {
		s.ended, s.sent = true, sent{m.Sent, m.SentRows}
	}
	if s.ended && s.stored.messages > s.sent.messages {
		return fmt.Errorf("received %d messages of source shard %d, which sent %d: the transport repeated messages", s.stored.messages, m.Shard, s.sent.messages)
	}
	if s.settled() {
		if s.stored.rows != s.sent.rows {
			return fmt.Errorf("received %d rows of source shard %d, which sent %d: rows were lost or added in transit", s.stored.rows, m.Shard, s.sent.rows)
		}
		e.settle(m.Shard)
	}
	return nil
}

// settle is called when a source shard is settled, and wakes the readers that waited for it.
// mu is held.
func (e *ends) settle(source int) {
	if !e.aligned {
		first := int(e.settled.Load())
		if source != first {
			return
		}
		for first < e.src.Hi && e.sources[first-e.src.Lo].settled() {
			first++
		}
		e.settled.Store(int64(first))
	}
	for _, in := range e.inboxes {
		if e.firstUnsettledLocked(in.shard) >= in.need {
			in.need = math.MaxInt
			in.wakeReader()
		}
	}
}

// firstUnsettled returns the first source shard that sends to a destination shard and is not
// settled. The rows of this source shard are the next to be passed on: no rows that arrive
// later belong before them.
func (e *ends) firstUnsettled(shard int) int {
	if !e.aligned {
		return int(e.settled.Load())
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.firstUnsettledLocked(shard)
}

// firstUnsettledLocked is like firstUnsettled, but mu is held.
func (e *ends) firstUnsettledLocked(shard int) int {
	switch {
	case !e.aligned:
		return int(e.settled.Load())
	case e.src.Contains(shard) && e.sources[shard-e.src.Lo].settled():
		return shard + 1
	}
	return shard
}

// sourcesEnd returns the exclusive end of the range of source shards that send to a destination
// shard.
func (e *ends) sourcesEnd(shard int) int {
	if e.aligned {
		return shard + 1
	}
	return e.src.Hi
}

// wakeAt arranges that the reader of in is woken when firstUnsettled(in.shard) has reached need.
// It returns false if firstUnsettled(in.shard) has already reached need.
func (e *ends) wakeAt(in *inbox, need int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.firstUnsettledLocked(in.shard) >= need {
		return false
	}
	in.need = need
	return true
}
