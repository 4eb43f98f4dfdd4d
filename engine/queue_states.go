package engine

import "github.com/superstep-ml/superstep/engine/task"

// queueStates implements task.Checkpointer for a worker, whose queues are saved in a store, in the
// memory of other workers, or in both.
type queueStates struct {
	durable *workerCheckpoints // nil if the job has no checkpoints
	copies  *workerCopies      // nil if states are not copied
}

// states returns the states of a worker, or nil if none are saved.
func (j *workerJob) states() task.Checkpointer {
	if j.checkpoints == nil && j.copies == nil {
		return nil
	}
	return &queueStates{j.checkpoints, j.copies}
}

// From implements task.Checkpointer.
func (s *queueStates) From(queue string) *task.Cut {
	if s.copies != nil && s.copies.from[queue] != nil {
		return s.copies.from[queue]
	}
	if s.durable != nil {
		return s.durable.From(queue)
	}
	return nil
}

// Decide implements task.Checkpointer. If checkpoints are due by their number of supersteps, the
// decision is made after each superstep.
func (s *queueStates) Decide(queue string, step int) (d task.Decision) {
	if s.copies != nil {
		due, next := s.copies.decide(queue, step)
		d.Next = next
		if due {
			d.Purposes |= task.InMemory
		}
	}
	if s.durable != nil && s.durable.saver != nil {
		if s.durable.Due(queue, step) {
			d.Purposes |= task.Durable
		}
		if s.durable.steps > 0 {
			d.Next = 1
		}
	}
	return d
}

// Save implements task.Checkpointer.
func (s *queueStates) Save(queue string, state *task.Saved) {
	if s.copies != nil && state.Purposes&task.InMemory != 0 {
		s.copies.share(queue, state)
	}
	if s.durable != nil && s.durable.saver != nil && state.Purposes&task.Durable != 0 {
		s.durable.Save(queue, state)
	}
}
