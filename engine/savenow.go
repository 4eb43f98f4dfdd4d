package engine

import (
	"errors"
	"maps"
	"slices"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/task"
)

// saveRequest is a request for a checkpoint now. Each queue that runs is saved after its current
// superstep, or its first one if it continues from a saved state and has not begun yet. The request is done
// when a checkpoint with all of these states is written.
type saveRequest struct {
	to   string // place to which the checkpoint is copied; "" if it is not
	done func(m *checkpoint.Manifest, err error)

	// handed has the queues whose states are awaited, and the superstep of each state; 0 until the
	// state is handed over.
	handed map[string]int
}

var errRunEnded = errors.New("the run has ended before its state was saved")

// saveNow asks for a checkpoint now, and for a copy of it unless to is "". done is called once, from
// a goroutine of the saver. If saveNow returns an error, done is not called.
func (s *saver) saveNow(to string, done func(m *checkpoint.Manifest, err error)) error {
	if to != "" && s.checkPlace != nil {
		if err := s.checkPlace(to); err != nil {
			return err
		}
	}
	r := &saveRequest{to: to, done: done, handed: make(map[string]int)}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.quit:
		return errRunEnded
	default:
	}
	if to != "" {
		var err error
		if r.done, err = s.countSavepoint(done); err != nil {
			return err
		}
	}
	for queue := range s.running {
		r.handed[queue], s.forced[queue] = 0, true
	}
	for key, c := range s.waiting { // of queues that have ended
		if !s.running[key.queue] {
			r.handed[key.queue] = c.Step
		}
	}
	s.requests = append(s.requests, r)
	s.wakeUp()
	return nil
}

// continues notes that queues continue from saved states. A request awaits them although they have not done a
// superstep in this attempt: without their next states, what it saves could be older than that from which
// they continue.
func (s *saver) continues(queues []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, queue := range queues {
		s.running[queue] = true
	}
}

// hand notes that the state of a queue is handed over. mu is held.
func (s *saver) hand(queue string, c *task.Saved) {
	delete(s.forced, queue)
	if c.Last {
		delete(s.running, queue)
	}
	for _, r := range s.requests {
		if step, awaited := r.handed[queue]; awaited && step == 0 {
			r.handed[queue] = c.Step
		}
	}
}

// waitsForNothing reports whether there is a request for which no state is awaited. mu is held.
func (s *saver) waitsForNothing() bool {
	return slices.ContainsFunc(s.requests, func(r *saveRequest) bool { return len(r.handed) == 0 })
}

// answer calls done of the requests for which all states have been written, or begins their copies. It is
// called in the saver's goroutine after a write of m, or after one that failed.
func (s *saver) answer(m *checkpoint.Manifest, err error) {
	s.mu.Lock()
	var ready []*saveRequest
	s.requests = slices.DeleteFunc(s.requests, func(r *saveRequest) bool {
		if err == nil {
			maps.DeleteFunc(r.handed, func(queue string, step int) bool {
				return step > 0 && slices.ContainsFunc(m.Queues, func(q checkpoint.Queue) bool { return q.Name == queue && q.Superstep >= step })
			})
		}
		if err != nil || len(r.handed) == 0 {
			ready = append(ready, r)
			return true
		}
		return false
	})
	if len(s.requests) == 0 {
		clear(s.forced)
	}
	s.mu.Unlock()
	for _, r := range ready {
		if err == nil && r.to != "" {
			s.copyBehind(m, r)
		} else {
			r.done(m, err)
		}
	}
}
