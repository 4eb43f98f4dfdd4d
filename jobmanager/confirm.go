package jobmanager

import (
	"context"
	"sync"

	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// A worker that has delivered rows or text keeps none of it once the job manager has confirmed the
// delivery. So before that, the job manager flushes the rows to disk, and records how many events
// the file has. If it starts again and finds fewer, it knows that the attempt is incomplete.

// confirms has the deliveries of one job that wait for their confirmation. All that wait at the
// same time share one flush and one record.
type confirms struct {
	mu      sync.Mutex
	waiting []chan error
	busy    bool // a goroutine confirms deliveries
}

// confirm returns when everything that job j has delivered so far is on disk and on record.
func (m *Manager) confirm(ctx context.Context, j *job) error {
	c, done := &j.confirms, make(chan error, 1)
	c.mu.Lock()
	c.waiting = append(c.waiting, done)
	if !c.busy {
		c.busy = true
		m.tasks.Go(func() { m.confirmAll(j) })
	}
	c.mu.Unlock()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	case <-m.ctx.Done():
		return wire.Error(codes.Unavailable, "the job manager stops")
	}
}

// confirmAll confirms deliveries until none waits.
func (m *Manager) confirmAll(j *job) {
	c := &j.confirms
	for {
		c.mu.Lock()
		waiting := c.waiting
		c.waiting = nil
		if c.busy = len(waiting) > 0; !c.busy {
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		err := m.recordConfirmed(j)
		for _, done := range waiting {
			done <- err
		}
	}
}

// recordConfirmed flushes the events of a job to disk and records their number.
func (m *Manager) recordConfirmed(j *job) error {
	events, err := j.spool.sync()
	if err != nil {
		return err
	}
	written := make(chan error, 1)
	m.mu.Lock()
	if j.last == nil { // the job commits or has ended, and its record has the number in any case
		m.mu.Unlock()
		return nil
	}
	j.confirmed = max(j.confirmed, events)
	r := *j.last
	r.Events = j.confirmed
	c, err := newChange(r)
	if err == nil {
		m.recorder.put(entry{change: &c, then: func(err error) { written <- err }})
	}
	m.mu.Unlock()
	if err != nil {
		return err
	}
	return <-written
}
