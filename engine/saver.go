package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/wire"
)

// Times of a saver.
const (
	firstRetry   = time.Second      // time before a failed checkpoint is tried again; doubled each time
	longestRetry = time.Minute      // limit of that time
	lastWrite    = 10 * time.Second // time for the last checkpoint of a run that failed
	longWrite    = time.Minute      // time after which a warning says that a checkpoint takes long
	removal      = time.Minute      // time for the removal of the checkpoints of a run that succeeded
	grace        = 10 * time.Second // further time for a store to return when its context has ended
)

// saver writes the checkpoints of a run. It implements task.Checkpointer. The subtasks hand over
// encoded states, and a goroutine of the saver writes the newest state of each queue. While it
// writes, at most one more state of each queue is in memory.
//
// If the run has several processes, each has a saver. The saver of process 0 decides when states
// are saved, and writes the manifests, for which it waits for the other savers. These write every
// state that they get: no state of a queue is due before all have written the one before. The last
// state of a queue is not asked for, so the state before it may still be awaited.
type saver struct {
	store   checkpoint.Store       // nil if the run only continues from a savepoint
	journal *checkpoint.Journal    // of process 0; used by the goroutine only, once it runs
	parts   *checkpoint.PartWriter // of other processes; used likewise
	several bool                   // the run has several processes
	log     hclog.Logger
	fail    context.CancelCauseFunc
	report  func(checkpointWrite) // called after each write; nil if nobody is told
	from    map[string]*task.Cut  // states from which the queues continue
	origin  *wire.Origin          // the checkpoint that has them; nil in processes other than 0

	every     time.Duration
	steps     int // number of supersteps between two checkpoints; 0 means that every decides
	failAfter time.Duration
	mtbf      time.Duration // if it is positive, the cost of checkpoints decides in place of every
	prove     bool          // each queue is saved after its first superstep, which shows that it can be

	context context.Context // of the writes
	cancel  context.CancelFunc
	quit    chan struct{} // closed when the run has ended
	ended   chan struct{} // closed when the goroutine has left its loop
	closed  chan struct{} // closed when the goroutine has closed the store
	wake    chan struct{} // has an element if the goroutine must look for something to write

	ending ending // set when quit is closed; 0 before

	copying chan struct{}  // has an element while a checkpoint is copied
	copies  sync.WaitGroup // copies of checkpoints that wait or are under way

	// checkPlace returns an error if a savepoint cannot be at a place; nil means that any place is accepted.
	checkPlace func(place string) error
	// openPlace opens a place for a savepoint.
	openPlace func(ctx context.Context, place string, fail context.CancelCauseFunc) (checkpoint.Store, error)

	mu         sync.Mutex
	running    map[string]bool // queues that have done a superstep, here or before this attempt, and not their last
	requests   []*saveRequest
	savepoints int                         // those that are asked for and not complete
	forced     map[string]bool             // queues that are due because of a request
	proved     map[string]bool             // queues that were due at least once
	waiting    map[stateKey]*task.Saved    // states to be written
	writing    map[stateKey]*task.Saved    // states that are being written; nil if none are
	urgent     bool                        // the waiting states are to be written at once
	last       time.Time                   // when the last write began, or the run
	saved      map[string]time.Time        // when the last state of a queue was handed over
	chosen     map[string]intervalFromCost // of queues that were saved, if mtbf is positive
	dueStep    map[string]int              // last superstep of a queue for which Due returned true, if steps and several decide
	failing    time.Time                   // when the first of the failed writes began, if the last write failed
	failure    error                       // of the last write; nil if it did not fail
	retry      time.Time                   // when to try again
	backoff    time.Duration
}

// stateKey identifies a state that waits to be written.
type stateKey struct {
	queue string
	last  bool // the state after the last superstep
}

// ending says what a saver does at its end.
type ending int

const (
	// endFailed: the run has failed, so the states that wait are written.
	endFailed ending = iota + 1
	// endSucceeded: the run has succeeded, so its checkpoints are removed.
	endSucceeded
	// endLeft: other processes of the run decide what becomes of its checkpoints.
	endLeft
)

// From implements task.Checkpointer.
func (s *saver) From(queue string) *task.Cut { return s.from[queue] }

// start begins to write, if the run has a store.
func (s *saver) start() {
	if s.store == nil {
		return
	}
	s.context, s.cancel = context.WithCancel(context.Background())
	s.quit, s.ended, s.wake = make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	s.last = time.Now()
	s.closed, s.copying = make(chan struct{}), make(chan struct{}, 1)
	go func() {
		defer close(s.closed)
		s.main()
		close(s.ended)
		s.finish()
	}()
}

// Decide implements task.Checkpointer.
func (s *saver) Decide(queue string, step int) task.Decision {
	if s.Due(queue, step) {
		return task.Decision{Purposes: task.Durable}
	}
	return task.Decision{}
}

// Due reports whether the state of a queue is to be written after a superstep.
func (s *saver) Due(queue string, step int) bool {
	if s.store == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	forced := s.forced[queue] || s.prove && !s.proved[queue]
	s.running[queue] = true
	due := s.dueNow(queue, step, forced)
	if due {
		s.proved[queue] = true
	}
	return due
}

// dueNow decides for Due. forced says that the state is due before its time. mu is held.
func (s *saver) dueNow(queue string, step int, forced bool) bool {
	if s.steps > 0 {
		if !s.several {
			return forced || step%s.steps == 0
		}
		// Nothing is due before all processes have written the state before. Then it is due at once.
		if s.pending(queue) || !forced && step/s.steps == s.dueStep[queue]/s.steps {
			return false
		}
		s.dueStep[queue] = step
		return true
	}
	before, known := s.saved[queue]
	if !known {
		before = s.last // the run has begun, or another queue was written
		s.saved[queue] = before
	}
	every := s.every
	if i, measured := s.chosen[queue]; measured {
		every = i.interval
	}
	return !s.pending(queue) && (forced || time.Since(before) >= every)
}

// pending reports whether something is being written or, if there are several processes, a state of
// the queue waits for that. mu is held.
func (s *saver) pending(queue string) bool {
	return s.writing != nil || s.several && s.waiting[stateKey{queue, false}] != nil
}

// Save implements task.Checkpointer. The state of a queue that has ended waits until the time for
// the next checkpoint, as there may be many short queues.
func (s *saver) Save(queue string, c *task.Saved) {
	if s.store == nil {
		return
	}
	s.mu.Lock()
	if s.parts == nil {
		delete(s.waiting, stateKey{queue, false})
	}
	s.waiting[stateKey{queue, c.Last}], s.saved[queue] = c, time.Now()
	s.urgent = s.urgent || !c.Last || s.steps > 0 || s.parts != nil || len(s.requests) > 0
	if s.mtbf > 0 {
		s.chosen[queue] = s.chosen[queue].measured(c.Delay, s.mtbf)
		s.log.Debug("a checkpoint delayed the supersteps", "queue", queue, "for", c.Delay, "next in", s.chosen[queue].interval)
	}
	s.hand(queue, c)
	s.mu.Unlock()
	s.wakeUp()
}

// wakeUp makes the saver's goroutine look for something to write.
func (s *saver) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// main writes states until the run has ended.
func (s *saver) main() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		states, now, wait := s.take(time.Now())
		if now {
			s.write(states)
			continue
		}
		if wait > 0 {
			timer.Reset(wait)
		} else {
			timer.Stop()
		}
		select {
		case <-s.quit:
			return
		case <-s.wake:
		case <-timer.C:
		}
	}
}

// take returns the states to be written, and whether a checkpoint is to be written now, which may
// have no new state. If it is not, take returns how long to wait, or 0 if nothing waits.
func (s *saver) take(now time.Time) (states []checkpoint.State, write bool, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waitsForNothing() {
		return s.takeAll(now), true, 0
	}
	if len(s.waiting) == 0 {
		return nil, false, 0
	}
	at := s.last.Add(s.every)
	if s.urgent || len(s.requests) > 0 {
		at = now
	}
	if at.Before(s.retry) {
		at = s.retry
	}
	if now.Before(at) {
		return nil, false, at.Sub(now)
	}
	return s.takeAll(now), true, 0
}

// takeAll moves the waiting states to writing, and returns them. mu is held.
func (s *saver) takeAll(now time.Time) (states []checkpoint.State) {
	for key, c := range s.waiting {
		state := checkpoint.State{Queue: key.queue, Superstep: c.Step, Ended: c.Last, Of: 1 + c.Subtasks}
		state.First, state.Pieces = c.Pieces()
		states = append(states, state)
	}
	slices.SortFunc(states, func(a, b checkpoint.State) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Superstep, b.Superstep))
	})
	s.writing, s.waiting = s.waiting, make(map[stateKey]*task.Saved)
	s.urgent, s.last = false, now
	return states
}

// write writes a checkpoint.
func (s *saver) write(states []checkpoint.State) {
	began := time.Now()
	m, leftover, err := s.put(began, states)
	select {
	case <-s.quit:
		if s.ending != endFailed { // close has ended the write
			return
		}
	default:
	}
	if leftover != nil {
		s.log.Warn("an old checkpoint could not be removed", "error", leftover)
	}
	if m != nil && err == nil {
		s.log.Info("wrote a checkpoint", "number", m.Number, "bytes", m.Size(), "time", time.Since(began))
	}
	s.wrote(began, err)
	if s.report != nil {
		s.report(checkpointWrite{states: states, began: began, manifest: m, err: err})
	}
	s.answer(m, err)
}

// put stores the states of a checkpoint. What is called afterwards does not count as a part of the write.
func (s *saver) put(began time.Time, states []checkpoint.State) (m *checkpoint.Manifest, leftover, err error) {
	defer s.failIfLate(began)()
	defer time.AfterFunc(longWrite, func() { s.log.Warn("a checkpoint takes long to write", "why", s.awaited(began)) }).Stop()
	if s.parts != nil {
		return nil, nil, s.parts.Write(s.context, states)
	}
	return s.journal.Write(s.context, states)
}

// failIfLate ends the run if the write that begins now does not end before --checkpoint-fail-after
// is over. stop is called when the write has ended.
func (s *saver) failIfLate(began time.Time) (stop func() bool) {
	if s.failAfter == 0 {
		return func() bool { return true }
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.failing.IsZero() {
		began = s.failing
	}
	before := s.failure
	return time.AfterFunc(s.failAfter-time.Since(began), func() {
		why := s.awaited(began)
		if before != nil {
			why = fmt.Errorf("%w; before that: %w", why, before)
		}
		s.fail(fmt.Errorf("no checkpoint could be written for %v, and --checkpoint-fail-after is %v: %w", time.Since(began).Round(time.Second), s.failAfter, why))
	}).Stop
}

// awaited says for what a write waits, or why it is tried again and again since a time.
func (s *saver) awaited(since time.Time) error {
	if s.journal != nil {
		if text := s.journal.Awaited(); text != "" {
			return errors.New(text)
		}
	}
	if store, tries := s.store.(interface{ LastFailure(since time.Time) error }); tries {
		if err := store.LastFailure(since); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s does not answer", s.store)
}

// wrote notes the result of a write. States that could not be written are written later, unless
// there are newer ones.
func (s *saver) wrote(began time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	states := s.writing
	s.writing = nil
	if err == nil {
		s.failing, s.failure, s.retry, s.backoff = time.Time{}, nil, time.Time{}, 0
		return
	}
	if errors.Is(err, checkpoint.ErrTaken) || errors.Is(err, checkpoint.ErrGone) { // this attempt is lost
		s.fail(err)
		return
	}
	for key, c := range states {
		newer := s.waiting[key] != nil || s.parts == nil && s.waiting[stateKey{key.queue, true}] != nil
		if !newer {
			s.waiting[key] = c
		}
	}
	if s.failing.IsZero() {
		s.failing, s.backoff = began, firstRetry
	}
	now := time.Now()
	s.failure = err
	s.urgent, s.retry = true, now.Add(s.backoff)
	s.log.Warn("a checkpoint could not be written", "error", err, "again in", s.backoff)
	s.backoff = min(2*s.backoff, longestRetry)
	if lasted := now.Sub(s.failing); s.failAfter > 0 && lasted >= s.failAfter {
		s.fail(fmt.Errorf("no checkpoint could be written for %v, and --checkpoint-fail-after is %v: %w", lasted.Round(time.Second), s.failAfter, err))
	}
}

// close ends the writing and closes the store. Only the first call has an effect. It gives up a store that does not answer, such as a
// disk whose writes hang: the program then goes on, and the goroutine of the saver is left behind.
func (s *saver) close(e ending) {
	if s.store == nil {
		return
	}
	s.mu.Lock()
	again := s.ending != 0
	if !again {
		s.ending = e
		close(s.quit)
	}
	s.mu.Unlock()
	if again {
		return
	}
	defer s.cancel()
	limit := lastWrite
	switch e {
	case endFailed:
		defer time.AfterFunc(lastWrite, s.cancel).Stop()
	case endSucceeded:
		limit = removal
		fallthrough
	default:
		s.cancel() // a checkpoint that is being written is of no use any more
	}
	if !within(lastWrite+grace, s.ended) || !within(limit+grace, s.closed) {
		s.log.Warn("the store of the checkpoints does not answer: what it holds is left as it is", "store", s.store)
	}
}

// closeStore closes the store of a saver that was not started.
func (s *saver) closeStore() error {
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}

// within waits for done, at most for the given time, and reports whether it is closed.
func within(limit time.Duration, done <-chan struct{}) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// finish does the work of close, in the saver's goroutine.
func (s *saver) finish() {
	defer s.answer(nil, errRunEnded)
	if s.ending == endFailed {
		s.mu.Lock()
		states := s.takeAll(time.Now())
		s.mu.Unlock()
		if len(states) > 0 {
			s.write(states)
		}
	}
	s.awaitCopies()
	if s.ending == endSucceeded {
		ctx, cancel := context.WithTimeout(context.Background(), removal)
		defer cancel()
		if err := s.journal.Remove(ctx); err != nil {
			s.log.Warn("the checkpoints of the run could not be removed", "error", err)
		}
	}
	if err := s.store.Close(); err != nil {
		s.log.Warn("the lock of the checkpoints could not be removed", "error", err)
	}
}
