package task

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/superstep-ml/superstep/engine/plan"
)

// Checkpointer decides when the states of queues are saved, and takes them. Its methods are
// called from the goroutines of the subtasks, which wait for them, so they must return soon.
type Checkpointer interface {
	// Due reports whether the state of a queue is to be saved after a superstep. It is called
	// after each superstep, by subtask 0 of the queue, when the verdict is known.
	Due(queue string, step int) bool
	// Save takes the state of a queue after a superstep for which Due returned true, and after
	// the last superstep in any case. Nothing else refers to the memory of c.
	Save(queue string, c *Cut)
}

// checkCheckpoints returns an error if the settings for checkpoints do not fit the plan.
func (e *Env) checkCheckpoints(p *plan.Plan, part Part) error {
	if len(part.Slots) > 1 && (e.Checkpoints != nil || len(e.From) > 0) {
		return fmt.Errorf("the subtasks of job %q are in %d workers: the states of queues are saved and restored only if all are in one", p.Job, len(part.Slots))
	}
	for queue, from := range e.From {
		if !slices.ContainsFunc(p.Queues, func(q plan.Queue) bool { return q.Name == queue }) {
			return fmt.Errorf("there is a state of queue %q, which job %q does not have", queue, p.Job)
		}
		if err := from.check(); err != nil {
			return fmt.Errorf("the state of queue %q: %w", queue, err)
		}
	}
	return nil
}

// saving collects what the members of a gang save after one superstep. The members meet at the
// verdict of each superstep, so that all of them have saved before the next state is saved.
type saving struct {
	parts []CutPart
	cut   *Cut // everything but the parts; from subtask 0
	done  atomic.Int32
}

// save saves the state of the member after a superstep. The last member to do so passes the
// state of the queue to Env.Checkpoints.
func (m *member) save(step int, last, stopped bool) error {
	m.current.Store(m.betweenStages)
	return m.turn(func() error {
		return m.call(m.betweenStages, func() (err error) {
			g := m.gang
			s := &g.saving
			if s.parts[m.index-g.here.Lo], err = m.body.Save(); err != nil {
				return err
			}
			if m.index == 0 {
				s.cut = g.cutAfter(step, last, stopped)
				s.cut.Elapsed += m.stageEnd
			}
			if int(s.done.Add(1)) < g.here.Len() {
				return nil
			}
			s.done.Store(0)
			cut := s.cut
			cut.Parts, s.cut = slices.Clone(s.parts), nil
			clear(s.parts)
			m.run.env.Checkpoints.Save(g.queue.Name, cut)
			return nil
		})
	})
}
