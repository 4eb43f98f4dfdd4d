package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/engine/origin"
	"github.com/superstep-ml/superstep/engine/plan"
)

// A job without durable checkpoints changes its workers by states in memory: worker 0 is asked for
// the states now, has each running queue copied after its current superstep, and has all states
// gathered at all workers, so that whichever workers are left can continue.

const (
	// gatherLimit is the longest time for which worker 0 waits for the states, after the supersteps
	// after which they are copied.
	gatherLimit = time.Minute
	// gatheredFor is the time for which the states of later supersteps go to all workers too. The
	// attempt usually ends before.
	gatheredFor = 10 * time.Second
)

// memorySaves are the requests of a worker 0 for states in memory. They are guarded by
// workerCopies.mu.
type memorySaves struct {
	running map[string]bool      // queues that have done a superstep, here or before this attempt, and not their last
	awaited map[string]bool      // queues whose state is to be copied; true when that has begun
	asked   map[string]bool      // queues that the open requests await, or have awaited
	ahead   map[string]bool      // queues that have done a superstep after their last copy, while a request is open
	again   bool                 // queues that were ahead are awaited once more
	unsaved map[string]error     // why the state of a queue cannot be saved, so that requests are refused
	failed  error                // why the state of an awaited queue could not be saved
	blocked map[string]time.Time // since when another copy of the state of an awaited queue is under way
	open    int                  // requests that are not answered
	changed chan struct{}        // closed when a queue is not awaited any more
	narrow  time.Time            // when states need not go to all workers any more; zero if they do not
}

// continues notes that queues continue from saved states; see saver.continues.
func (c *workerCopies) continues(queues []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, queue := range queues {
		c.saves.running[queue] = true
	}
}

// saveNow asks for the states now. done is called once, from a goroutine of its own, with the states
// that all workers have, unless saveNow returns an error.
func (c *workerCopies) saveNow(done func(states []copies.State, err error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exchange == nil || c.context.Err() != nil {
		return errRunEnded
	}
	s := &c.saves
	if err := s.refuses(); err != nil {
		return err
	}
	if s.open == 0 {
		clear(s.asked)
	}
	s.open++
	s.failed, s.again = nil, false
	clear(s.ahead)
	clear(s.blocked)
	for queue := range s.running {
		s.asked[queue] = true
		if _, known := s.awaited[queue]; !known {
			s.awaited[queue] = false
		}
	}
	c.work.Go(func() {
		states, err := c.gather()
		c.mu.Lock()
		s.open--
		s.narrow = time.Now()
		if err == nil {
			s.narrow = s.narrow.Add(gatheredFor)
		}
		c.mu.Unlock()
		done(states, err)
	})
	return nil
}

// gather waits until the awaited states are handed over and all workers have them.
func (c *workerCopies) gather() ([]copies.State, error) {
	for {
		c.mu.Lock()
		waits, changed, err := c.saves.waits()
		c.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if !waits {
			break
		}
		select {
		case <-changed:
		case <-c.context.Done():
			return nil, errRunEnded
		}
	}
	ctx, cancel := context.WithTimeoutCause(c.context, gatherLimit, fmt.Errorf("not all workers have them after %s", gatherLimit))
	defer cancel()
	states, err := c.exchange.Gather(ctx, origin.IsReport) // a report comes from some workers long before others
	if err != nil {
		return nil, err
	}
	return states, c.void()
}

var errVoid = errors.New("a worker had no memory for its part of it, or could not make it, as the log of that worker says: if it is the memory, give the job more with --memory")

// void returns an error if the newest state of a queue that was asked for has come to nothing, as the next attempt
// would do supersteps again.
func (c *workerCopies) void() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, queue := range slices.Sorted(maps.Keys(c.saves.asked)) {
		if c.exchange.Voided(queue) {
			return unsavedState(queue, errVoid)
		}
	}
	return nil
}

// waits reports whether the state of a queue is awaited, and returns a channel that is closed when that
// changes.
func (s *memorySaves) waits() (waits bool, changed <-chan struct{}, err error) {
	if s.failed != nil || len(s.awaited) == 0 {
		return false, nil, s.failed
	}
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return true, s.changed, nil
}

// refuses returns why no request can be answered, as the next attempt would begin a queue again that has
// done supersteps; nil if it would not.
func (s *memorySaves) refuses() error {
	for _, queue := range slices.Sorted(maps.Keys(s.unsaved)) {
		return unsavedState(queue, s.unsaved[queue])
	}
	return nil
}

func unsavedState(queue string, why error) error {
	return fmt.Errorf("the state of queue %q cannot be saved: %w", queue, why)
}

// opened notes that a queue begins its supersteps.
func (c *workerCopies) opened(queue string) {
	r := plan.ResumptionOf(c.job.plan.Nodes, queue)
	if r.Resumes != plan.FromTheBeginning {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.saves.unsaved[queue] = fmt.Errorf("%s has fields and no snapshot", r.Because)
}

// decide says whether the state of a queue is copied after a superstep because of a request. known is
// false if the requests leave that open. free says that no copy is under way. If another worker cannot save
// its part of a state, that copy is under way for ever, so the wait for it has a limit.
func (s *memorySaves) decide(now time.Time, queue string, free bool) (due, known bool) {
	s.running[queue] = true
	switch begun, awaited := s.awaited[queue]; {
	case awaited && !begun && free:
		s.awaited[queue] = true
		return true, true
	case awaited && !begun && s.isBlocked(now, queue):
		s.handed(queue, false, fmt.Errorf("another copy of it has not ended within %s", gatherLimit))
		return false, true
	case awaited || s.open > 0 && len(s.awaited) == 0: // no other state begins before these are gathered
		return false, true
	}
	return false, false
}

// isBlocked reports whether another copy of the state of an awaited queue has been under way for longer than
// a request waits. It is called after each superstep for which there is one.
func (s *memorySaves) isBlocked(now time.Time, queue string) bool {
	since, known := s.blocked[queue]
	if !known {
		s.blocked[queue] = now
	}
	return known && now.Sub(since) > gatherLimit
}

// stepped notes whether the state of a queue is copied after a superstep.
func (s *memorySaves) stepped(queue string, due bool) {
	if due {
		delete(s.ahead, queue)
	} else if s.open > 0 {
		s.ahead[queue] = true
	}
}

// handed notes that the state of a queue has been handed over, or why it cannot be.
func (s *memorySaves) handed(queue string, last bool, failed error) {
	if last || failed != nil {
		delete(s.running, queue)
	}
	if begun, awaited := s.awaited[queue]; !awaited || !begun && !last && failed == nil {
		return
	}
	delete(s.awaited, queue)
	if failed != nil {
		s.failed = unsavedState(queue, failed)
	}
	if len(s.awaited) == 0 && s.open > 0 && !s.again {
		s.awaitAhead()
	}
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// awaitAhead awaits the queues once more that have done supersteps while another queue was awaited.
func (s *memorySaves) awaitAhead() {
	s.again = true
	for queue := range s.ahead {
		if s.running[queue] {
			s.awaited[queue], s.asked[queue] = false, true
		}
	}
}

// narrowed reports whether states need not go to all workers any more. It does so once.
func (s *memorySaves) narrowed(now time.Time) bool {
	if s.narrow.IsZero() || s.open > 0 || now.Before(s.narrow) {
		return false
	}
	s.narrow = time.Time{}
	return true
}
