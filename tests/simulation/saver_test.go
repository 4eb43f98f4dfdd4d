package simulation

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/engine/workerlife"
	"github.com/superstep-ml/superstep/internal/wire"
)

// saver writes the checkpoints of a worker, behind the supersteps. It follows engine/saver.go; the
// journal and the parts are those of package checkpoint.
type saver struct {
	k       *worker
	h       *handle
	journal *checkpoint.Journal    // of worker 0
	parts   *checkpoint.PartWriter // of the others
	steps   int
	every   time.Duration
	f       *fiber
	closed  bool

	waiting, writing map[stateKey]*task.Saved
	running, forced  map[string]bool
	saved            map[string]time.Duration
	dueStep          map[string]int
	requests         []*saveRequest
	last, retry      time.Duration
	written          int
}

type stateKey struct {
	queue string
	last  bool
}

// saveRequest is a request for a checkpoint now.
type saveRequest struct {
	handed map[string]int
	place  string
	done   func(m *checkpoint.Manifest, err error)
}

func newSaver(k *worker, h *handle) *saver {
	s := k.d.Spec.Run.Checkpoints
	return &saver{
		k: k, h: h, steps: s.Supersteps, every: s.Every,
		waiting: make(map[stateKey]*task.Saved), running: make(map[string]bool), forced: make(map[string]bool),
		saved: make(map[string]time.Duration), dueStep: make(map[string]int), last: k.c.w.now,
	}
}

// start begins to write.
func (s *saver) start() {
	s.f = s.k.c.start(s.main)
	s.h.f = s.f
}

// several reports whether the run has several processes.
func (s *saver) several() bool { return s.k.sharing() > 1 }

// due reports whether the state of a queue is to be written after a superstep.
func (s *saver) due(queue string, step int) bool {
	s.running[queue] = true
	pending := s.writing != nil || s.several() && s.waiting[stateKey{queue, false}] != nil
	forced := s.forced[queue]
	if s.steps > 0 {
		if !s.several() {
			return forced || step%s.steps == 0
		}
		if pending || !forced && step/s.steps == s.dueStep[queue]/s.steps {
			return false
		}
		s.dueStep[queue] = step
		return true
	}
	if _, known := s.saved[queue]; !known {
		s.saved[queue] = s.last
	}
	return !pending && (forced || s.k.c.w.now-s.saved[queue] >= s.every)
}

// save takes the state of a queue.
func (s *saver) save(queue string, c *task.Saved) {
	if s.closed {
		return
	}
	if s.parts == nil {
		delete(s.waiting, stateKey{queue, false})
	}
	s.waiting[stateKey{queue, c.Last}], s.saved[queue] = c, s.k.c.w.now
	delete(s.forced, queue)
	if c.Last {
		delete(s.running, queue)
	}
	for _, r := range s.requests {
		if step, awaited := r.handed[queue]; awaited && step == 0 {
			r.handed[queue] = c.Step
		}
	}
	if s.f != nil {
		s.f.wake()
	}
}

// main writes states until the saver is closed.
func (s *saver) main(f *fiber) {
	for {
		err := f.until(func() bool {
			return len(s.waiting) > 0 || slices.ContainsFunc(s.requests, func(r *saveRequest) bool { return len(r.handed) == 0 })
		})
		if wait := s.retry - s.k.c.w.now; err == nil && wait > 0 {
			err = f.sleep(wait)
		}
		if err != nil {
			return
		}
		if err := s.write(f); err != nil {
			return
		}
	}
}

// write writes a checkpoint. It returns an error if the saver is to end.
func (s *saver) write(f *fiber) error {
	states := s.takeAll()
	s.k.c.w.point("write", s.k.c)
	ctx := context.Background()
	var m *checkpoint.Manifest
	var err error
	if s.parts != nil {
		err = s.parts.Write(ctx, states)
	} else {
		m, _, err = s.journal.Write(ctx, states)
	}
	if f.cause != nil {
		return f.cause
	}
	writing := s.writing
	s.writing = nil
	if errors.Is(err, checkpoint.ErrTaken) {
		if s.k.work != nil {
			s.k.work.cancel(err)
		}
		return err
	}
	if err != nil {
		for key, c := range writing {
			if s.waiting[key] == nil && !(s.parts == nil && s.waiting[stateKey{key.queue, true}] != nil) {
				s.waiting[key] = c
			}
		}
		s.retry = s.k.c.w.now + time.Second
	}
	if s.parts == nil {
		s.report(err)
		s.answer(m, err)
	} else if err != nil {
		s.reportUnwritten(states, err)
	}
	return f.cause
}

// report says what has become of the checkpoints.
func (s *saver) report(err error) {
	c := &wire.Checkpointed{}
	if err == nil {
		s.written++
	}
	c.Written = s.written
	s.k.c.post(&wire.FromWorker{Checkpointed: c})
}

// reportUnwritten says that a part could not be written.
func (s *saver) reportUnwritten(states []checkpoint.State, err error) {
	c := &wire.Checkpointed{Failing: &wire.FailedCheckpoints{Count: 1, Error: err.Error()}}
	for _, state := range states {
		c.Unwritten = append(c.Unwritten, wire.OriginQueue{Name: state.Queue, Superstep: state.Superstep, Ended: state.Ended})
	}
	s.k.c.post(&wire.FromWorker{Checkpointed: c})
}

// unwritten handles the failure of another worker to write its part of a checkpoint.
func (k *worker) unwritten(m *wire.Unwritten) {
	if k.state != workerlife.Running || k.saver == nil || k.saver.journal == nil {
		return
	}
	var states []checkpoint.State
	for _, q := range m.Queues {
		states = append(states, checkpoint.State{Queue: q.Name, Superstep: q.Superstep})
	}
	k.saver.journal.PartFailed(m.Worker, states, m.Error)
}

// takeAll moves the waiting states to writing, and returns them.
func (s *saver) takeAll() (states []checkpoint.State) {
	for key, c := range s.waiting {
		first, pieces := c.Pieces()
		states = append(states, checkpoint.State{Queue: key.queue, Superstep: c.Step, Ended: c.Last, Of: 1 + c.Subtasks, First: first, Pieces: iter.Seq2[[]byte, error](pieces)})
	}
	slices.SortFunc(states, func(a, b checkpoint.State) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Superstep, b.Superstep))
	})
	s.writing, s.waiting, s.last = s.waiting, make(map[stateKey]*task.Saved), s.k.c.w.now
	return states
}

// saveNow asks for a checkpoint now.
func (s *saver) saveNow(r *saveRequest) {
	r.handed = make(map[string]int)
	for queue := range s.running {
		r.handed[queue], s.forced[queue] = 0, true
	}
	for key, c := range s.waiting {
		if !s.running[key.queue] {
			r.handed[key.queue] = c.Step
		}
	}
	s.requests = append(s.requests, r)
	s.f.wake()
}

// answer answers the requests for which all states have been written.
func (s *saver) answer(m *checkpoint.Manifest, err error) {
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
	for _, r := range ready {
		if err == nil && r.place != "" {
			err = s.copyTo(m, r.place)
		}
		r.done(m, err)
	}
}

// copyTo copies a checkpoint to a place of its own.
func (s *saver) copyTo(m *checkpoint.Manifest, place string) error {
	to := s.k.job.savepoint(place).join(s.f, s.k)
	return checkpoint.Copy(context.Background(), m, s.h, to)
}

// close ends the writing.
func (s *saver) close() {
	if s.closed {
		return
	}
	s.closed = true
	if s.f != nil {
		s.f.cancel(errStopped)
	}
	for _, r := range s.requests {
		r.done(nil, errors.New("the run has ended before its state was saved"))
	}
	s.requests = nil
	s.k.job.store.release(s.h)
}

// save handles a request for a checkpoint; see engine/worker_checkpoints.go. Rows are not simulated: if some are
// to be copied first, only the time passes.
func (k *worker) save(m *wire.Save) {
	answer, known := k.answers[m.Request]
	if k.answers == nil {
		k.answers = make(map[int]*wire.Saved)
	}
	say := func(a *wire.Saved) {
		k.answers[m.Request] = a
		if !k.closed {
			k.c.post(&wire.FromWorker{Saved: a})
		}
	}
	switch {
	case answer != nil:
		say(answer)
	case known:
	case m.Precopy != nil:
		k.answers[m.Request] = nil
		k.c.after(k.c.w.between(0, min(m.Precopy.Within, 5*time.Second)), func() { k.saveNow(m, say) })
	default:
		k.answers[m.Request] = nil
		k.saveNow(m, say)
	}
}

// saveNow makes a checkpoint now, and says how that went.
func (k *worker) saveNow(m *wire.Save, say func(*wire.Saved)) {
	if k.state != workerlife.Running || k.saver == nil || k.saver.f == nil || k.saver.closed {
		say(&wire.Saved{Request: m.Request, Failure: "the worker has no checkpoints, or does not run"})
		return
	}
	k.saver.saveNow(&saveRequest{place: m.Place, done: func(c *checkpoint.Manifest, err error) {
		a := &wire.Saved{Request: m.Request}
		if err != nil {
			a.Failure = err.Error()
		} else {
			a.Checkpoint = wire.Origin{Number: c.Number, Written: c.Written}
			for _, q := range c.Queues {
				a.Checkpoint.Queues = append(a.Checkpoint.Queues, wire.OriginQueue{Name: q.Name, Superstep: q.Superstep, Ended: q.Ended})
			}
		}
		say(a)
	}})
}
