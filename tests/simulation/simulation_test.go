package simulation

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/wire"
)

var (
	oneSeed = flag.Int("seed", -1, "runs the schedule of one seed, and prints its trace")
	count   = flag.Int("schedules", testsize.Of(1_500, 100_000), "how many schedules TestSchedules runs")
	from    = flag.Int("from", 0, "the first seed of TestSchedules")
	most    = flag.Int("failures", 1, "after how many schedules that fail TestSchedules ends")
)

// TestSchedules runs schedules of random faults. In each of them all invariants must hold, and every job
// must end.
func TestSchedules(t *testing.T) {
	if *oneSeed >= 0 {
		w := simulate(uint64(*oneSeed), true)
		fmt.Println(strings.Join(w.trace, "\n"))
		if w.broken != "" {
			t.Fatal(w.broken)
		}
		return
	}
	sum, failures := newSummary(), 0
	for seed := *from; seed < *from+*count; seed++ {
		w := simulate(uint64(seed), false)
		sum.add(w)
		if w.broken == "" {
			continue
		}
		if failures++; *most > 1 {
			t.Errorf("seed %d: %s", seed, w.broken)
		} else {
			explain(t, w)
		}
		if failures >= *most {
			break
		}
	}
	t.Log(sum)
}

// explain runs a schedule that has failed again, and prints its trace.
func explain(t *testing.T, w *world) {
	again := simulate(w.seed, true)
	if again.broken != w.broken {
		t.Errorf("seed %d is not deterministic: %s, and then %s", w.seed, w.broken, again.broken)
	}
	t.Errorf("seed %d: %s\n%s\nThis runs it again: go test ./tests/simulation -run TestSchedules -seed %d", w.seed, w.broken, again.tail(), w.seed)
}

// simulate runs the schedule of a seed.
func simulate(seed uint64, tracing bool) *world {
	w := newWorld(seed)
	defer w.close()
	w.tracing = tracing
	w.carryOutEntry(entry{do: w.begin})
	w.run(w.plan.horizon, func() bool { return false })
	if w.broken != "" {
		return w
	}
	w.carryOutEntry(entry{do: w.settle})
	deadline := w.plan.horizon + liveness
	w.run(deadline, w.allEnded)
	if w.broken == "" && !w.allEnded() {
		w.violated("%v after the last fault, jobs have not ended:\n%s", liveness, w.waits())
	}
	w.run(w.now+afterwards, func() bool { return false })
	if left := w.leftKept(); left != "" && w.broken == "" {
		w.violated("%s", left)
	}
	w.run(w.now+keepFor+grace, func() bool { return w.left() == "" })
	if left := w.left(); left != "" && w.broken == "" {
		w.violated("something is left: %s", left)
	}
	return w
}

// afterwards is for how long a schedule goes on when all jobs have ended, as what is late may still come.
const afterwards = 3 * time.Second

// allEnded reports whether all jobs have ended.
func (w *world) allEnded() bool {
	for _, c := range w.clients {
		if c.job.id == "" || c.job.final == nil {
			return false
		}
	}
	return true
}

// waits says who waits for what.
func (w *world) waits() string {
	var b strings.Builder
	for _, c := range w.clients {
		if c.job.final != nil {
			continue
		}
		info := wire.JobInfo{}
		if m := w.manager.jm; m != nil {
			info, _ = m.core.Job(c.job.id)
		}
		fmt.Fprintf(&b, "job %s is %s, attempt %d: %s\n", c.job, info.State, info.Attempt, info.Detail)
	}
	for _, h := range w.hosts {
		if h.tm == nil {
			continue
		}
		for _, t := range h.tm.inOrder() {
			fmt.Fprintf(&b, "%s: worker %s is %s", h.tm.name, t.ref, t.state)
			if t.child != nil {
				fmt.Fprintf(&b, ", itself %s", t.child.k.state)
			}
			b.WriteByte('\n')
		}
	}
	if m := w.manager.jm; m != nil {
		for _, tm := range m.core.TaskManagers(w.now) {
			fmt.Fprintf(&b, "task manager %s is %s, %d of %d slots free, workers %v, cordon %v\n", tm.Name, tm.State, tm.Free, tm.Slots, tm.Workers, tm.Cordon)
		}
	}
	return b.String()
}

// tail returns the last lines of the trace.
func (w *world) tail() string {
	return strings.Join(w.trace[max(0, len(w.trace)-150):], "\n")
}

// summary counts what happened in schedules.
type summary struct {
	schedules, steps, jobs, attempts int
	states, faults, marks            map[string]int
}

func newSummary() *summary {
	return &summary{states: make(map[string]int), faults: make(map[string]int), marks: make(map[string]int)}
}

func (s *summary) add(w *world) {
	s.schedules++
	s.steps += w.steps
	for _, c := range w.clients {
		s.jobs++
		if c.job.final != nil {
			s.states[c.job.final.State.String()]++
			s.attempts += c.job.final.Attempt
		}
	}
	for _, i := range w.incidents {
		s.faults[i.kind.String()]++
	}
	for mark, n := range w.marks {
		s.marks[mark] += n
	}
}

func (s *summary) String() string {
	return fmt.Sprintf("%d schedules, %d events, %d jobs %v, %d attempts\nfaults: %v\nwhat happened: %v", s.schedules, s.steps, s.jobs, s.states, s.attempts, s.faults, s.marks)
}
