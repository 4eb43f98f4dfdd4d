package task

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/transport"
)

// sideInput holds the process's only copy of the rows of a side edge. Subtasks wait for done
// and then share records.
type sideInput struct {
	name    string      // name of the sender, for errors
	memory  *sideMemory // of the whole run
	fail    func(err error)
	readers atomic.Int32 // number of subtasks that have not called leave

	done    chan struct{}  // closed when every source shard has ended
	records []arrow.Record // in (source shard, sequence) order; set before done is closed

	mu         sync.Mutex
	byShard    [][]arrow.Record
	received   []sent // messages and rows received, by source shard
	ended      []bool // by source shard
	openShards int    // number of source shards that have not ended
	dropped    bool

	// Only the methods of memory use the following fields, under its mutex.
	heldBytes  int64 // bytes held
	unfitBytes int64 // bytes of all rows received so far if they did not fit and none are kept, else 0
	freedBytes int64 // bytes that were held when the input was released, if another input had failed to fit before
}

var _ transport.Receiver = (*sideInput)(nil)

func newSideInput(name string, shards int, readers int, memory *sideMemory, fail func(error)) *sideInput {
	s := &sideInput{
		name: name, memory: memory, fail: fail,
		done:    make(chan struct{}),
		byShard: make([][]arrow.Record, shards), received: make([]sent, shards), ended: make([]bool, shards), openShards: shards,
	}
	memory.add(s)
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
	// All messages of a source shard except the last carry one batch.
	if m.Shard < 0 || m.Shard >= len(s.ended) || s.ended[m.Shard] || m.Seq != s.received[m.Shard].messages {
		return fmt.Errorf("received message %d of source shard %d out of order: the transport lost or reordered messages", m.Seq, m.Shard)
	}
	if m.Rows != nil {
		s.received[m.Shard].messages++
		s.received[m.Shard].rows += m.Rows.NumRows()
		if s.memory.take(s, batch.Size(m.Rows)) {
			m.Rows.Retain()
			s.byShard[m.Shard] = append(s.byShard[m.Shard], m.Rows)
		} else {
			s.forget()
		}
	}
	if !m.Last {
		return nil
	}
	if received, want := s.received[m.Shard], (sent{m.Sent, m.SentRows}); received != want {
		return fmt.Errorf("received %d rows in %d messages of source shard %d, which sent %d rows in %d: rows were lost or added in transit",
			received.rows, received.messages, m.Shard, want.rows, want.messages)
	}
	s.ended[m.Shard] = true
	if s.openShards--; s.openShards > 0 {
		return nil
	}
	// If the input did not fit, done is not closed, and so readers do not see the input.
	if err := s.memory.checkFits(s); err != nil {
		return err
	}
	for _, rows := range s.byShard {
		s.records = append(s.records, rows...)
	}
	close(s.done)
	return nil
}

// leave is called once by each reading subtask when it does not need the input any more. The
// last call releases the rows.
func (s *sideInput) leave() {
	if s.readers.Add(-1) == 0 {
		s.drop()
	}
}

// drop releases the rows.
func (s *sideInput) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dropped {
		return
	}
	s.dropped = true
	s.forget()
	s.memory.release(s)
}

// forget releases the rows received so far; mu is held.
func (s *sideInput) forget() {
	for _, rows := range s.byShard {
		for _, r := range rows {
			r.Release()
		}
	}
	clear(s.byShard)
	s.records = nil
}

// sideMemory accounts for all memory that the side inputs of a run hold. Their rows cannot
// spill, as operators access them at random. Side inputs may make exchanges spill, but together
// they must fit in the run's memory.
//
// If rows of an input do not fit, all its rows are dropped, and further rows are only counted,
// so that the error can say what budget suffices. The counting comes to an end, as the senders
// of an input never wait for that input.
type sideMemory struct {
	budget *Budget // of the run

	mu     sync.Mutex
	held   int64 // bytes of all inputs
	inputs []*sideInput
}

// add registers an input. Other inputs may already be receiving rows.
func (m *sideMemory) add(s *sideInput) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inputs = append(m.inputs, s)
}

// take counts n more bytes of an input, and reports whether they may be kept.
func (m *sideMemory) take(s *sideInput, n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.unfitBytes == 0 && n <= m.budget.Limit()-m.held {
		m.held += n
		s.heldBytes += n
		m.budget.Take(n)
		return true
	}
	m.budget.Release(s.heldBytes)
	m.held -= s.heldBytes
	s.heldBytes, s.unfitBytes = 0, s.unfitBytes+s.heldBytes+n
	return false
}

// hold counts n more bytes of a complete input, or returns an error if they do not fit.
func (m *sideMemory) hold(s *sideInput, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > m.budget.Limit()-m.held {
		return m.failure(s, n)
	}
	m.held += n
	s.heldBytes += n
	m.budget.Take(n)
	return nil
}

// checkFits returns an error if a complete input did not fit.
func (m *sideMemory) checkFits(s *sideInput) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.unfitBytes == 0 {
		return nil
	}
	return m.failure(s, 0)
}

// failure returns the error for an input that, with n more bytes, does not fit; mu is held.
func (m *sideMemory) failure(s *sideInput, n int64) error {
	e := &SideError{Size: s.heldBytes + s.unfitBytes + n, Together: n, Limit: m.budget.Limit()}
	for _, other := range m.inputs {
		e.Together += other.size()
		if other != s && other.size() > max(e.Size, e.LargestSize) {
			e.Largest, e.LargestSize = other.name, other.size()
		}
	}
	e.Enough = m.budget.ofJob(e.Together)
	return e
}

// release releases the bytes that an input holds.
func (m *sideMemory) release(s *sideInput) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.budget.Release(s.heldBytes)
	m.held -= s.heldBytes
	held := s.heldBytes
	s.heldBytes, s.unfitBytes = 0, 0
	if slices.ContainsFunc(m.inputs, func(other *sideInput) bool { return other.unfitBytes > 0 }) {
		s.freedBytes = held
	}
}

// size returns the size of an input for errors, in bytes; memory's mutex is held.
func (s *sideInput) size() int64 { return s.heldBytes + s.unfitBytes + s.freedBytes }

// SideError says that a side input does not fit in memory together with the other side inputs.
type SideError struct {
	Size        int64  // bytes of the input
	Together    int64  // bytes of all side inputs that were held when this input did not fit
	Limit       int64  // budget of this process
	Largest     string // sender of the largest side input, if that is another input
	LargestSize int64  // bytes of the largest side input
	Enough      int64  // bytes of memory for the whole job that would suffice for what was counted
}

// Error returns the sizes and says what to do.
func (e *SideError) Error() string {
	text := fmt.Sprintf("out of memory: it takes %s in this process", humanize.Bytes(e.Size))
	if e.Together > e.Size {
		text += fmt.Sprintf(", and all side inputs together %s", humanize.Bytes(e.Together))
	}
	if e.Largest != "" {
		text += fmt.Sprintf(" (%s of them the rows of %s)", humanize.Bytes(e.LargestSize), e.Largest)
	}
	return text + fmt.Sprintf(", beyond the budget of %s; side inputs stay in memory whole: broadcast fewer rows, or give the job at least --memory %s",
		humanize.Bytes(e.Limit), flagBytes(e.Enough))
}
