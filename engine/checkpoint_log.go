package engine

import (
	"slices"
	"time"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/internal/wire"
)

// checkpointWrite describes a write of a saver, after its end.
type checkpointWrite struct {
	states   []checkpoint.State
	began    time.Time
	manifest *checkpoint.Manifest // nil if err says why the write failed, and in processes other than 0
	err      error
}

// checkpointLog gathers the writes of an attempt for the job manager. The goroutine of the saver
// uses it alone.
type checkpointLog struct {
	// tell gets the whole after each write. It must not wait, and may keep what it gets.
	tell func(*wire.Checkpointed)
	sum  wire.Checkpointed
}

// add notes a write.
func (l *checkpointLog) add(w checkpointWrite) {
	if w.err != nil {
		l.sum.Failed++
		l.sum.Failing = failedAgain(l.sum.Failing, w)
	} else {
		l.sum.Failing = nil
		l.written(w)
	}
	sum := l.sum
	sum.Newest = slices.Clone(sum.Newest)
	l.tell(&sum)
}

// failedAgain returns the description of the writes that failed one after the other, of which w is the
// last. before describes the others; it is nil if there are none.
func failedAgain(before *wire.FailedCheckpoints, w checkpointWrite) *wire.FailedCheckpoints {
	failing := wire.FailedCheckpoints{Since: w.began}
	if before != nil {
		failing = *before
	}
	failing.Count++
	failing.Error = w.err.Error()
	return &failing
}

// unwrittenLog tells worker 0, through the job manager, of the parts of checkpoints that this process, which
// is another worker, could not write. Without that, worker 0 would wait for them, and nobody would know why.
// The goroutine of the saver uses it alone.
type unwrittenLog struct {
	tell    func(*wire.Checkpointed) // as in checkpointLog
	failing *wire.FailedCheckpoints  // nil if the last write has succeeded
}

// add notes a write.
func (l *unwrittenLog) add(w checkpointWrite) {
	if w.err == nil {
		l.failing = nil
		return
	}
	l.failing = failedAgain(l.failing, w)
	c := &wire.Checkpointed{Failing: l.failing}
	for _, s := range w.states {
		c.Unwritten = append(c.Unwritten, wire.OriginQueue{Name: s.Queue, Superstep: s.Superstep, Ended: s.Ended})
	}
	l.tell(c)
}

// partFailed tells a journal that a worker could not write its part of states.
func partFailed(j *checkpoint.Journal, worker int, queues []wire.OriginQueue, why string) {
	states := make([]checkpoint.State, len(queues))
	for i, q := range queues {
		states[i] = checkpoint.State{Queue: q.Name, Superstep: q.Superstep}
	}
	j.PartFailed(worker, states, why)
}

// written notes a write that has succeeded.
func (l *checkpointLog) written(w checkpointWrite) {
	m := w.manifest
	seconds := time.Since(w.began).Seconds()
	c := wire.WrittenCheckpoint{Number: m.Number, Written: m.Written, Seconds: seconds, Bytes: m.Size()}
	for _, q := range m.Queues {
		c.Queues = append(c.Queues, wire.OriginQueue{Name: q.Name, Superstep: q.Superstep, Ended: q.Ended})
		if slices.ContainsFunc(w.states, func(s checkpoint.State) bool { return s.Queue == q.Name }) {
			l.sum.Bytes += q.Size()
		}
	}
	l.sum.Written++
	l.sum.Seconds += seconds
	l.sum.Newest = append(l.sum.Newest, c)
	l.sum.Newest = l.sum.Newest[max(0, len(l.sum.Newest)-wire.MaxCheckpointsTold):]
}
