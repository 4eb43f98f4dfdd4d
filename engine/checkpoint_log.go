package engine

import (
	"slices"
	"time"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/internal/wire"
)

// checkpointWrite describes a write of a saver in process 0, after its end.
type checkpointWrite struct {
	states   []checkpoint.State
	began    time.Time
	manifest *checkpoint.Manifest // nil if err says why the write failed
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
		failing := wire.FailedCheckpoints{Since: w.began}
		if l.sum.Failing != nil {
			failing = *l.sum.Failing
		}
		failing.Count++
		failing.Error = w.err.Error()
		l.sum.Failed++
		l.sum.Failing = &failing
	} else {
		l.sum.Failing = nil
		l.written(w)
	}
	sum := l.sum
	sum.Newest = slices.Clone(sum.Newest)
	l.tell(&sum)
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
