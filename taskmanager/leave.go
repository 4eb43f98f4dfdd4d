package taskmanager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// When a task manager is to stop, it announces that to the job manager, and stays until its workers
// have ended. The job manager gives it no new workers with slots, and makes the jobs go on elsewhere. Processes
// that wait for the next attempt stay too, as they give it what they have kept.

// departure is the announcement that the task manager leaves.
type departure struct {
	why string
	by  time.Time // when it kills the workers that are left
}

// message returns the announcement with the time that is left now.
func (d departure) message() *wire.Leaving {
	return &wire.Leaving{Reason: d.why, Within: max(0, time.Until(d.by))}
}

// handOver announces that the task manager leaves, and waits until its workers have ended and the job
// manager can be told so. It waits at most for Config.DrainWithin, and no longer when Config.AtOnce is
// closed. If the job manager refuses the task manager for good, which ended says, it returns true and
// the error from ended.
func (m *manager) handOver(why string, ended <-chan error) (refused bool, err error) {
	if m.DrainWithin == 0 {
		return false, nil
	}
	by := time.Now().Add(m.DrainWithin)
	m.outbox.Announce(departure{why: why, by: by}.message)
	late := time.NewTimer(m.DrainWithin)
	defer late.Stop()
	for told := ""; ; {
		jobs, waits := m.awaits()
		switch {
		case !waits:
			return false, nil
		case jobs == "":
			m.Logger.Info("waits for a connection to the job manager, to report that its workers have ended", "until", by.Format(time.TimeOnly))
		case jobs != told:
			m.Logger.Info("waits until its jobs go on elsewhere or have ended", "jobs", jobs, "until", by.Format(time.TimeOnly))
		}
		told = jobs
		select {
		case <-m.changed:
		case <-late.C:
			m.Logger.Warn(fmt.Sprintf("the time to leave, %s (--drain-within), is over: killing the workers that are left", m.DrainWithin), "jobs", jobs)
			return false, nil
		case <-m.AtOnce:
			m.Logger.Warn("leaves at once, as it was told to stop again: killing the workers that are left", "jobs", jobs)
			return false, nil
		case err := <-ended:
			return true, err
		}
	}
}

// whyDone says why the task manager is to stop when the context is done.
func whyDone(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != context.Canceled {
		return cause.Error()
	}
	return "it was told to"
}

// awaits reports whether a task manager that leaves still waits for something, and returns the jobs for
// whose workers it waits. If there are none, it waits only while it has no connection on which to
// report their ends.
func (m *manager) awaits() (jobs string, waits bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var ids []string
	for ref := range m.workers {
		ids = append(ids, string(ref.Job))
	}
	for _, ref := range m.kept.refs() {
		ids = append(ids, string(ref.Job))
	}
	slices.Sort(ids)
	jobs = strings.Join(slices.Compact(ids), ", ")
	return jobs, jobs != "" || !m.joined && !m.outbox.Empty()
}

// keptChange is called when a process waits no longer for the next attempt. The job manager learns of that at once,
// so that it does not count on the process.
func (m *manager) keptChange() {
	m.outbox.Beat()
	m.change()
}

// change tells handOver and sweepRows that a worker has ended, that a process waits no longer for the next
// attempt, or that the task manager has registered.
func (m *manager) change() {
	for _, tell := range []chan struct{}{m.changed, m.ended} {
		select {
		case tell <- struct{}{}:
		default:
		}
	}
}
