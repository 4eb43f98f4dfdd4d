package task

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/transport"
)

// sideInput is the process's one copy of what a side edge carries. Subtasks wait
// for done and then share records.
type sideInput struct {
	budget  *Budget // of the whole run
	fail    func(err error)
	readers atomic.Int32 // subtasks that have not given it up

	done    chan struct{}  // closed when every source shard has ended
	records []arrow.Record // in (source shard, sequence) order; set before done

	mu       sync.Mutex
	byShard  [][]arrow.Record
	ended    []bool
	open     int // source shards that have not ended
	reserved int64
	dropped  bool
}

var _ transport.Receiver = (*sideInput)(nil)

func newSideInput(shards int, readers int, budget *Budget, fail func(error)) *sideInput {
	s := &sideInput{
		budget: budget, fail: fail,
		done:    make(chan struct{}),
		byShard: make([][]arrow.Record, shards), ended: make([]bool, shards), open: shards,
	}
	s.readers.Store(int32(readers))
	return s
}

// Receive stores a message.
func (s *sideInput) Receive(m transport.Message) {
	defer m.Release()
	if err := s.store(&m); err != nil {
		s.fail(err)
	}
}

func (s *sideInput) store(m *transport.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped {
		return nil
	}
	// Every message but the last carries one batch.
	if m.Shard < 0 || m.Shard >= len(s.ended) || s.ended[m.Shard] || m.Seq != int64(len(s.byShard[m.Shard])) {
		return fmt.Errorf("received message %d of source shard %d out of order: the transport lost or reordered messages", m.Seq, m.Shard)
	}
	if m.Rows != nil {
		// It cannot spill, as operators address it freely; it may push the runs of
		// exchanges to disk, but must fit in the run's memory on its own.
		n := batch.Size(m.Rows)
		if s.reserved+n > s.budget.Limit() {
			return &BudgetError{Budget: "the run", Want: n, Used: s.reserved, Limit: s.budget.Limit()}
		}
		s.budget.take(n)
		s.reserved += n
		m.Rows.Retain()
		s.byShard[m.Shard] = append(s.byShard[m.Shard], m.Rows)
	}
	if !m.Last {
		return nil
	}
	came := sent{messages: int64(len(s.byShard[m.Shard]))}
	for _, rows := range s.byShard[m.Shard] {
		came.rows += rows.NumRows()
	}
	if want := (sent{m.Sent, m.SentRows}); came != want {
		return fmt.Errorf("received %d rows in %d messages of source shard %d, which sent %d rows in %d: rows were lost or added in transit",
			came.rows, came.messages, m.Shard, want.rows, want.messages)
	}
	s.ended[m.Shard] = true
	if s.open--; s.open == 0 {
		for _, rows := range s.byShard {
			s.records = append(s.records, rows...)
		}
		close(s.done)
	}
	return nil
}

// leave is called once by each reading subtask when it needs the input no more.
// The last one's gives up the rows.
func (s *sideInput) leave() {
	if s.readers.Add(-1) == 0 {
		s.drop()
	}
}

// drop gives up the rows.
func (s *sideInput) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped {
		return
	}
	s.dropped = true
	for _, rows := range s.byShard {
		for _, r := range rows {
			r.Release()
		}
	}
	s.byShard, s.records = nil, nil
	s.budget.Release(s.reserved)
}
