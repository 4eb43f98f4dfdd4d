package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/engine/origin"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/engine/workerlife"
	"github.com/superstep-ml/superstep/internal/wire"
)

// workerCheckpoints are the checkpoints of a worker. They implement task.Checkpointer. The worker
// makes them when it builds the job, and opens them later: worker 0 before the sinks begin, and the
// others when they start, as they need to know the checkpoint that worker 0 has chosen. Worker 0
// removes the checkpoints after it has committed, and so does a worker that finishes a commit.
type workerCheckpoints struct {
	*saver // nil until the checkpoints are open
	config *config
	run    *checkpointed
}

// newCheckpoints returns the checkpoints of a worker, or nil if the job has none.
func (j *workerJob) newCheckpoints(c *config) *workerCheckpoints {
	if !c.checkpoints.on() {
		return nil
	}
	d := j.deployment
	return &workerCheckpoints{config: c, run: &checkpointed{
		graph: j.builder.graph, plan: j.plan, args: d.Spec.Args, part: task.Part{Worker: d.Worker, Slots: slotRanges(d)},
		job: d.Job, attempt: d.Attempt,
	}}
}

// openCheckpoints opens the checkpoints on worker 0. inMemory reports whether a queue can continue from a state
// in the memory of the workers.
func (j *workerJob) openCheckpoints(ctx context.Context, inMemory func(queue string) bool) (*wire.Origin, error) {
	c := j.checkpoints
	if c == nil {
		return nil, nil
	}
	if j.deployment.Resume {
		c.run.inMemory = inMemory
	}
	c.run.report = (&checkpointLog{tell: j.progress.checkpointed}).add
	var err error
	if c.saver, err = c.config.openCheckpoints(ctx, c.run, j.failCheckpoints); err != nil {
		return nil, err
	}
	return c.origin, nil
}

// continues tells worker 0, which requests for states reach, from which states the queues continue.
func (j *workerJob) continues(from *wire.Origin) {
	queues := origin.Running(from)
	if j.checkpoints != nil && j.checkpoints.saver != nil {
		j.checkpoints.continues(queues)
	}
	if j.copies != nil {
		j.copies.continues(queues)
	}
}

// joinCheckpoints opens the checkpoints on a worker other than 0.
func (j *workerJob) joinCheckpoints(ctx context.Context, from *wire.Origin) error {
	c := j.checkpoints
	if d := j.deployment; c == nil || d.Worker == 0 || d.Worker >= running(d) { // a worker that only gives needs none
		return nil
	}
	if from == nil {
		return clusterFault(errors.New("the job has checkpoints, but worker 0 did not say where they begin"))
	}
	c.run.report = (&unwrittenLog{tell: j.progress.checkpointed}).add
	var err error
	c.saver, err = c.config.joinCheckpoints(ctx, c.run, from, j.failCheckpoints)
	return err
}

// failCheckpoints ends the run because of its checkpoints.
func (j *workerJob) failCheckpoints(cause error) { j.worker.cancel(cause) }

// closeCheckpoints ends the writing of checkpoints, if it has begun and not ended.
func (j *workerJob) closeCheckpoints(e ending) {
	if c := j.checkpoints; c != nil && c.saver != nil {
		c.saver.close(e)
	}
}

// removeCheckpoints removes the checkpoints of the job after its commit.
func (j *workerJob) removeCheckpoints(ctx context.Context) {
	if j.resumed == nil {
		j.closeCheckpoints(endSucceeded)
		return
	}
	if j.checkpoints == nil || j.checkpoints.config.checkpoints.dir == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removal)
	defer cancel()
	if err := j.checkpoints.config.removeCheckpoints(ctx, j.checkpoints.run); err != nil {
		j.logger.Warn("the checkpoints of the run could not be removed", "error", err)
	}
}

// savesOfWorker are the requests for checkpoints that a worker has got, which may be repeated.
type savesOfWorker struct {
	mu      sync.Mutex
	answers map[int]*wire.Saved // by request; nil while there is no answer
	over    bool                // no answer is sent any more
	sending sync.WaitGroup      // answers that are being sent
}

// end waits for the answers that are being sent. None is sent after that.
func (s *savesOfWorker) end() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.sending.Wait()
}

// begin makes end wait until sending.Done is called. It returns false if no answer is sent any more.
func (s *savesOfWorker) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.over {
		s.sending.Add(1)
	}
	return !s.over
}

// save handles a request for a checkpoint.
func (w *worker) save(m *wire.Save) {
	w.saves.mu.Lock()
	answer, known := w.saves.answers[m.Request]
	if w.saves.answers == nil {
		w.saves.answers = make(map[int]*wire.Saved)
	}
	if !known {
		w.saves.answers[m.Request] = nil
	}
	w.saves.mu.Unlock()
	refuse := func(why string) {
		w.saves.sending.Go(func() { w.answerSave(&wire.Saved{Request: m.Request, Failure: why}) })
	}
	switch {
	case answer != nil:
		w.saves.sending.Go(func() { w.tellSaved(answer) })
	case known: // the answer will come
	case w.state != workerlife.Running:
		refuse("the worker does not run")
	case m.Precopy != nil && w.job.precopy != nil:
		w.saves.sending.Go(func() {
			w.job.precopy.direct(w.context, m.Precopy)
			if err := w.job.saveNow(m, w.answerSave); err != nil {
				w.answerSave(&wire.Saved{Request: m.Request, Failure: err.Error()})
			}
		})
	default:
		if err := w.job.saveNow(m, w.answerSave); err != nil {
			refuse(err.Error())
		}
	}
}

// unwritten handles the failure of another worker to write its part of a checkpoint.
func (w *worker) unwritten(m *wire.Unwritten) {
	if w.state != workerlife.Running {
		return
	}
	if c := w.job.checkpoints; c != nil && c.saver != nil && c.journal != nil {
		partFailed(c.journal, m.Worker, m.Queues, m.Error)
	}
}

// saveNow saves the states of the queues now: in a checkpoint if the job has them, else in memory.
func (j *workerJob) saveNow(m *wire.Save, answer func(*wire.Saved)) error {
	told := func(o wire.Origin, err error) {
		a := &wire.Saved{Request: m.Request, Checkpoint: o}
		if err != nil {
			a = &wire.Saved{Request: m.Request, Failure: clipMessage(err.Error())}
		}
		answer(a)
	}
	if c := j.checkpoints; c != nil && c.saver != nil && c.store != nil {
		return c.saveNow(m.Place, func(c *checkpoint.Manifest, err error) {
			if err != nil {
				told(wire.Origin{}, err)
				return
			}
			told(wire.Origin{Number: c.Number, Written: c.Written, Queues: queuesOf(c)}, nil)
		})
	}
	if j.copies == nil || m.Place != "" {
		return errors.New("the worker has no checkpoints")
	}
	return j.copies.saveNow(func(states []copies.State, err error) {
		var o wire.Origin
		for _, s := range states {
			if origin.IsReport(s.Queue) {
				continue
			}
			o.Queues = append(o.Queues, wire.OriginQueue{Name: s.Queue, Superstep: s.Superstep, Ended: s.Ended, InMemory: true})
		}
		told(o, err)
	})
}

// answerSave keeps and sends the answer to a request for a checkpoint.
func (w *worker) answerSave(answer *wire.Saved) {
	w.saves.mu.Lock()
	w.saves.answers[answer.Request] = answer
	w.saves.mu.Unlock()
	w.tellSaved(answer)
}

// tellSaved sends an answer, unless the worker ends before. It may be called from any goroutine, also by what
// ends after the attempt.
func (w *worker) tellSaved(answer *wire.Saved) {
	if !w.saves.begin() {
		return
	}
	defer w.saves.sending.Done()
	_ = w.sender.send(w.context, &wire.FromWorker{Saved: answer})
}
