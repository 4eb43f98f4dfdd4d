package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/engine/copies"
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
	running map[string]bool // queues that have done a superstep, and not their last
	awaited map[string]bool // queues whose state is to be copied; true when that has begun
	failed  error           // why the state of an awaited queue could not be saved
	open    int             // requests that are not answered
	changed chan struct{}   // closed when a queue is not awaited any more
	narrow  time.Time       // when states need not go to all workers any more; zero if they do not
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
	s.open++
	s.failed = nil
	for queue := range s.running {
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
	return c.exchange.Gather(ctx)
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

// decide says whether the state of a queue is copied after a superstep because of a request. known is
// false if the requests leave that open. free says that no copy is under way.
func (s *memorySaves) decide(queue string, free bool) (due, known bool) {
	s.running[queue] = true
	begun, awaited := s.awaited[queue]
	switch {
	case awaited && !begun && free:
		s.awaited[queue] = true
		return true, true
	case s.open > 0: // no other state begins before the awaited ones are gathered
		return false, true
	}
	return false, false
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
		s.failed = fmt.Errorf("the state of queue %q cannot be saved: %w", queue, failed)
	}
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
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
