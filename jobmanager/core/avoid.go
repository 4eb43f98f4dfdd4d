package core

import (
	"maps"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// If workers die on a task manager again and again, its machine may be the cause: faulty memory,
// too little memory, a damaged library. So jobs, among them those that are restarted, then get
// slots of other task managers first, for a limited time. The task manager is only avoided: jobs
// that do not find enough other slots use its slots. So no job waits because of this.
//
// The program of a job may be the cause too. So a death does not count against a task manager if
// workers of the same job died on another task manager as well.

const (
	// avoidDeaths deaths within avoidWindow make a task manager avoided.
	avoidDeaths = 3
	avoidWindow = 10 * time.Minute
	// The first time, a task manager is avoided for avoidFirst after the last death. Each time
	// that it becomes avoided again, it is avoided for twice as long, up to avoidMost. For each
	// avoidForget that passes after that without a death, the next time is half as long.
	avoidFirst  = 5 * time.Minute
	avoidMost   = time.Hour
	avoidForget = 20 * time.Minute
	// maxDeaths is the number of deaths that are kept.
	maxDeaths = 1000
)

// death is the death of a worker: its process ended although nobody had told it to.
type death struct {
	at          time.Duration // counted time
	job         wire.JobID
	taskManager string // ID
}

// avoided says until when a task manager is avoided, or was avoided the last time.
type avoided struct {
	// times is 1 at first. It grows each time that the task manager becomes avoided again, until
	// the period is avoidMost, and shrinks by avoidForget.
	times int
	until time.Duration // counted time
	died  int           // number of deaths for which it is avoided
}

// period returns for how long a task manager is avoided after a death.
func (m avoided) period() time.Duration { return min(avoidFirst<<(m.times-1), avoidMost) }

// avoidance determines which task managers are avoided. It is a state machine whose only input
// is died. Its zero value is ready for use.
type avoidance struct {
	deaths []death            // deaths within the last avoidWindow, oldest first
	marks  map[string]avoided // ID of a task manager -> when it is or was avoided
}

// died records a death.
func (a *avoidance) died(d death) {
	a.forget(d.at)
	before := blamed(a.deaths)
	a.deaths = append(a.deaths, d)
	after := blamed(a.deaths)
	a.deaths = a.deaths[max(0, len(a.deaths)-maxDeaths):]
	if n := after[d.taskManager]; n >= avoidDeaths {
		a.mark(d.taskManager, d.at, n)
	}
	// The death may show that the job is to blame, and not another task manager where its
	// workers died before.
	for id, m := range a.marks {
		if m.until > d.at && before[id] >= avoidDeaths && after[id] < avoidDeaths {
			delete(a.marks, id)
		}
	}
}

// mark makes a task manager avoided, or continues to avoid it, because n workers died there.
func (a *avoidance) mark(id string, now time.Duration, n int) {
	m := a.marks[id]
	if m.until <= now && (m.times == 0 || m.period() < avoidMost) {
		m.times++
	}
	m.until, m.died = now+m.period(), n
	if a.marks == nil {
		a.marks = make(map[string]avoided)
	}
	a.marks[id] = m
}

// forget removes what is too old to matter at the counted time now.
func (a *avoidance) forget(now time.Duration) {
	a.deaths = slices.DeleteFunc(a.deaths, func(d death) bool { return now-d.at >= avoidWindow })
	maps.DeleteFunc(a.marks, func(_ string, m avoided) bool { return now-m.until >= time.Duration(m.times)*avoidForget })
	for id, m := range a.marks {
		if passed := int((now - m.until) / avoidForget); passed > 0 {
			// until moves with times, so that what is forgotten is not forgotten twice.
			m.times, m.until = m.times-passed, m.until+time.Duration(passed)*avoidForget
			a.marks[id] = m
		}
	}
}

// at returns whether, and until when, the task manager with the given ID is avoided at the
// counted time now.
func (a *avoidance) at(id string, now time.Duration) (avoided, bool) {
	m := a.marks[id]
	return m, m.until > now
}

// blamed returns the number of deaths that count against each task manager: those of jobs whose
// workers died on no other task manager.
func blamed(deaths []death) map[string]int {
	where := make(map[wire.JobID]string) // "" if workers of the job died on several task managers
	for _, d := range deaths {
		if at, ok := where[d.job]; ok && at != d.taskManager {
			where[d.job] = ""
		} else if !ok {
			where[d.job] = d.taskManager
		}
	}
	count := make(map[string]int)
	for _, d := range deaths {
		if where[d.job] == d.taskManager {
			count[d.taskManager]++
		}
	}
	return count
}

// died reports whether the end of worker w, which was in state before, counts as a death: its
// process ended by itself or by a signal of somebody else, and the worker had not reported an
// error of user code. A program that cannot run at all is not the fault of a machine.
func (w *worker) died(before WorkerState, f *wire.Failure, how ending) bool {
	return how == crashed && before != WorkerFailed && before != WorkerResolved &&
		(f == nil || f.Kind != wire.MisuseFailure && f.Kind != wire.ClusterFailure)
}

// avoidedInfo returns, for users, whether and why a task manager is avoided; nil means that it is
// not.
func (c *Core) avoidedInfo(n *taskManager) *wire.Avoidance {
	now := c.clock.Counted()
	m, ok := c.avoid.at(n.ID, now)
	if !ok {
		return nil
	}
	return &wire.Avoidance{Until: c.wall().Add(m.until - now).Round(time.Second), Died: m.died}
}
