package task

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/transport"
)

// sideInput is the process's one copy of what a side edge carries. Subtasks wait
// for done and then share records.
type sideInput struct {
	name    string      // of what sends it, for errors
	memory  *sideMemory // of the whole run
	fail    func(err error)
	readers atomic.Int32 // subtasks that have not given it up

	done    chan struct{}  // closed when every source shard has ended
	records []arrow.Record // in (source shard, sequence) order; set before done

	mu      sync.Mutex
	byShard [][]arrow.Record
	came    []sent // by source shard
	ended   []bool
	open    int // source shards that have not ended
	dropped bool

	// These are memory's, under its mutex.
	held  int64 // bytes
	over  int64 // bytes of all its rows so far, once some did not fit and none are kept
	freed int64 // bytes that it held when it was given up while another did not fit
}

var _ transport.Receiver = (*sideInput)(nil)

func newSideInput(name string, shards int, readers int, memory *sideMemory, fail func(error)) *sideInput {
	s := &sideInput{
		name: name, memory: memory, fail: fail,
		done:    make(chan struct{}),
		byShard: make([][]arrow.Record, shards), came: make([]sent, shards), ended: make([]bool, shards), open: shards,
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
	// Every message but the last carries one batch.
	if m.Shard < 0 || m.Shard >= len(s.ended) || s.ended[m.Shard] || m.Seq != s.came[m.Shard].messages {
		return fmt.Errorf("received message %d of source shard %d out of order: the transport lost or reordered messages", m.Seq, m.Shard)
	}
	if m.Rows != nil {
		s.came[m.Shard].messages++
		s.came[m.Shard].rows += m.Rows.NumRows()
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
	if came, want := s.came[m.Shard], (sent{m.Sent, m.SentRows}); came != want {
		return fmt.Errorf("received %d rows in %d messages of source shard %d, which sent %d rows in %d: rows were lost or added in transit",
			came.rows, came.messages, m.Shard, want.rows, want.messages)
	}
	s.ended[m.Shard] = true
	if s.open--; s.open > 0 {
		return nil
	}
	// Readers wait for done and never see an input that did not fit.
	if err := s.memory.whole(s); err != nil {
		return err
	}
	for _, rows := range s.byShard {
		s.records = append(s.records, rows...)
	}
	close(s.done)
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
	s.forget()
	s.memory.release(s)
}

// forget gives up the rows that came so far; mu is held.
func (s *sideInput) forget() {
	for _, rows := range s.byShard {
		for _, r := range rows {
			r.Release()
		}
	}
	clear(s.byShard)
	s.records = nil
}

// sideMemory accounts for what the side inputs of a run hold, all of it: their rows
// cannot go to disk, as operators address them freely. They may push the runs of
// exchanges there, but must fit in the run's memory together.
//
// Once rows of an input do not fit, none of it are kept, and its others are counted as
// they come, so that the error says what budget would do. That ends, as the rows of an
// input never depend on the input itself.
type sideMemory struct {
	budget *Budget // of the run

	mu     sync.Mutex
	held   int64 // bytes of all inputs
	inputs []*sideInput
}

// add is called once for each input. Others may receive rows by then.
func (m *sideMemory) add(s *sideInput) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inputs = append(m.inputs, s)
}

// take counts n bytes more of an input, and tells whether they may be kept.
func (m *sideMemory) take(s *sideInput, n int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.over == 0 && n <= m.budget.Limit()-m.held {
		m.held += n
		s.held += n
		m.budget.Take(n)
		return true
	}
	m.budget.Release(s.held)
	m.held -= s.held
	s.held, s.over = 0, s.over+s.held+n
	return false
}

// hold counts n bytes more of an input that is there, or says that they do not fit.
func (m *sideMemory) hold(s *sideInput, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n > m.budget.Limit()-m.held {
		return m.failure(s, n)
	}
	m.held += n
	s.held += n
	m.budget.Take(n)
	return nil
}

// whole says so if an input that has come to its end did not fit.
func (m *sideMemory) whole(s *sideInput) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.over == 0 {
		return nil
	}
	return m.failure(s, 0)
}

// failure says that an input does not fit, with n bytes more; mu is held.
func (m *sideMemory) failure(s *sideInput, n int64) error {
	e := &SideError{Size: s.held + s.over + n, Together: n, Limit: m.budget.Limit()}
	for _, other := range m.inputs {
		e.Together += other.size()
		if other != s && other.size() > max(e.Size, e.LargestSize) {
			e.Largest, e.LargestSize = other.name, other.size()
		}
	}
	e.Enough = m.budget.ofJob(e.Together)
	return e
}

// release gives back what an input holds.
func (m *sideMemory) release(s *sideInput) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.budget.Release(s.held)
	m.held -= s.held
	held := s.held
	s.held, s.over = 0, 0
	if slices.ContainsFunc(m.inputs, func(other *sideInput) bool { return other.over > 0 }) {
		s.freed = held
	}
}

// size is what an input counts for in errors, in bytes; memory's mutex is held.
func (s *sideInput) size() int64 { return s.held + s.over + s.freed }

// SideError says that a side input does not fit in memory beside the others.
type SideError struct {
	Size        int64  // bytes of the input
	Together    int64  // bytes of all side inputs that are there, or were while this one did not fit
	Limit       int64  // budget of this process
	Largest     string // what sends the largest input, if that is another
	LargestSize int64
	Enough      int64 // memory of the job that would hold what is there
}

// Error writes the sizes and what to do.
func (e *SideError) Error() string {
	text := fmt.Sprintf("out of memory: it takes %s in this process", FormatBytes(e.Size))
	if e.Together > e.Size {
		text += fmt.Sprintf(", and all side inputs together %s", FormatBytes(e.Together))
	}
	if e.Largest != "" {
		text += fmt.Sprintf(" (%s of them the rows of %s)", FormatBytes(e.LargestSize), e.Largest)
	}
	return text + fmt.Sprintf(", beyond the budget of %s; side inputs stay in memory whole: broadcast fewer rows, or give the job at least --memory %s",
		FormatBytes(e.Limit), flagBytes(e.Enough))
}
