package core

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestArrivals submits 1,000 jobs of all priorities at random times, elastic ones and others, to a
// cluster of 16 slots on which workers do what they are told: with time between them, and so often that
// dozens wait. All jobs must end. At any time, no job may have waited for long in front of all others
// although it could have its slots, free ones or such as elastic jobs can give back. No job may begin
// before another that has waited longer, unless its priority is higher and it was submitted within the
// time that this is worth. Two task managers leave for a while.
func TestArrivals(t *testing.T) {
	t.Run("some wait", func(t *testing.T) {
		a := testArrivals(t, 2*time.Second)
		require.Greater(t, a.grown, 30, "elastic jobs must have grown")
		require.Greater(t, a.shrunk, 30, "elastic jobs must have shrunk")
	})
	t.Run("many wait", func(t *testing.T) {
		a := testArrivals(t, 1200*time.Millisecond)
		require.Greater(t, a.longest, 50, "jobs must have waited")
	})
}

func testArrivals(t *testing.T, every time.Duration) *arrivals {
	a := newArrivals(t)
	draws := rand.New(rand.NewPCG(1, 2))
	next, jobs := time.Duration(0), 0
	for jobs < 1000 || len(a.core.live) > 0 {
		if a.now >= next && jobs < 1000 {
			a.submit(jobs, draws)
			jobs++
			next = a.now + time.Duration(draws.ExpFloat64()*float64(every))
		}
		switch a.now {
		case 5 * time.Minute:
			a.leave(2)
		case 8 * time.Minute:
			a.join(5)
		}
		a.tick()
		require.Less(t, a.now, 3*time.Hour, "%d jobs have not ended", len(a.core.live))
	}
	for _, j := range a.core.Jobs() {
		require.Equal(t, wire.JobFinished, j.State, "%s: %s", j.ID, j.Detail)
	}
	require.Greater(t, a.passed, 30, "jobs of a higher priority must have passed others")
	t.Logf("%d grown, %d shrunk, %d passed, %d at once", a.grown, a.shrunk, a.passed, a.longest)
	return a
}

// worth is what a level of priority is worth in these tests.
const worth = 20 * time.Second

// begins requires that no job that waits and was submitted before job id, which is deployed for the
// first time, has been passed without right.
func (a *arrivals) begins(id wire.JobID) {
	priority, at := a.core.jobs[id].info.Priority, a.submitted[id]
	for _, j := range a.core.live {
		if j.info.Attempt > 0 || j.info.State != wire.JobWaiting || a.submitted[j.info.ID] >= at {
			continue
		}
		before := at - a.submitted[j.info.ID]
		require.LessOrEqual(a.t, before, time.Duration(priority-j.info.Priority)*worth, "%s of priority %d begins, and %s of priority %d was submitted %s before it", id, priority, j.info.ID, j.info.Priority, before)
		a.passed++
	}
}

// arrivals is a core with task managers of four slots whose workers obey at the next tick.
type arrivals struct {
	t             *testing.T
	core          *Core
	now           time.Duration
	todo          []Event // for the next tick
	workers       map[wire.WorkerRef]int
	work          map[wire.JobID]float64 // seconds of work that are left, on one slot
	waiting       map[wire.JobID]time.Duration
	lastP         map[wire.JobID]int
	submitted     map[wire.JobID]time.Duration
	grown, shrunk int
	passed        int // number of times that a job began before one that had waited longer
	longest       int // largest number of jobs at once that had not ended
}

func newArrivals(t *testing.T) *arrivals {
	a := &arrivals{
		t: t, core: New(Config{Keep: 2000, Settle: time.Second, ScaleInterval: 3 * time.Second, Ageing: worth}),
		workers: map[wire.WorkerRef]int{}, work: map[wire.JobID]float64{}, waiting: map[wire.JobID]time.Duration{}, lastP: map[wire.JobID]int{}, submitted: map[wire.JobID]time.Duration{},
	}
	for conn := 1; conn <= 4; conn++ {
		a.join(conn)
	}
	return a
}

func (a *arrivals) join(conn int) {
	a.step(Registered{Conn: conn, Register: wire.Register{
		Version: wire.Version, ID: fmt.Sprint("tm", conn), Incarnation: "1", Slots: 4, Memory: 4000, Executable: anyHash,
	}})
}

// leave makes a task manager leave, with all its workers.
func (a *arrivals) leave(conn int) {
	maps.DeleteFunc(a.workers, func(_ wire.WorkerRef, on int) bool { return on == conn })
	a.step(Left{Conn: conn, Reason: "is told to"})
}

func (a *arrivals) submit(number int, draws *rand.Rand) {
	id := wire.JobID(fmt.Sprintf("j%04d", number))
	spec := wire.JobSpec{Name: "job", Shards: 128, Restart: wire.Restart{Delay: 200 * time.Millisecond}}
	spec.Parallelism, spec.Priority = 1+draws.IntN(8), wire.MinPriority+draws.IntN(wire.MaxPriority-wire.MinPriority+1)
	a.submitted[id] = a.now
	if draws.IntN(3) > 0 {
		spec.MinParallelism = 1 + draws.IntN(spec.Parallelism)
	}
	if draws.IntN(3) > 0 {
		spec.Run.Checkpoints = &wire.Checkpoints{Dir: "/shared"}
	}
	a.work[id] = 1 + draws.ExpFloat64()*16
	a.step(Submitted{ID: id, Spec: spec, Slots: spec.Parallelism})
}

// tick lets a tenth of a second pass.
func (a *arrivals) tick() {
	a.now += TickEvery
	todo := a.todo
	a.todo = nil
	for _, e := range todo {
		r, ok := e.(Reported)
		if ok && r.Ended != nil {
			delete(a.workers, r.WorkerRef)
		}
		a.step(e)
	}
	if a.now%(500*time.Millisecond) == 0 {
		for _, n := range slices.Clone(a.core.order) {
			a.step(Heartbeat{Conn: n.conn, Heartbeat: wire.Heartbeat{Running: slices.Collect(maps.Keys(n.workers))}})
		}
	}
	a.step(Tick{})
	for _, j := range a.core.live {
		if j.info.State != wire.JobRunning {
			continue
		}
		if a.work[j.info.ID] -= TickEvery.Seconds() * float64(j.info.Parallelism); a.work[j.info.ID] <= 0 {
			for _, w := range j.workers {
				a.say(wire.WorkerEvent{WorkerRef: w.ref, Finished: &wire.Finished{}})
			}
		}
	}
	a.check()
}

func (a *arrivals) say(e wire.WorkerEvent) {
	a.todo = append(a.todo, Reported{Conn: a.workers[e.WorkerRef], WorkerEvent: e})
}

func (a *arrivals) step(e Event) {
	for _, effect := range a.core.Step(a.now, e) {
		switch e := effect.(type) {
		case Persist:
			if e.Barrier {
				a.step(Persisted{ID: e.Job.ID, Attempt: e.Job.Attempt, State: e.Job.State})
			}
		case Send:
			a.obey(e)
		}
	}
}

// obey makes a worker do what it was told, until the next tick.
func (a *arrivals) obey(s Send) {
	if d := s.Message.Deploy; d != nil {
		a.workers[d.WorkerRef] = s.Conn
		if d.Attempt == 1 && d.Worker == 0 {
			a.begins(d.Job)
		}
		if before := a.lastP[d.Job]; d.Worker == 0 {
			if before > 0 && d.Spec.Parallelism > before {
				a.grown++
			} else if d.Spec.Parallelism < before {
				a.shrunk++
			}
			a.lastP[d.Job] = d.Spec.Parallelism
		}
		a.say(wire.WorkerEvent{WorkerRef: d.WorkerRef, Ready: &wire.Ready{Address: "h:1", Fingerprint: "f"}})
	}
	c := s.Message.Worker
	switch {
	case c == nil:
	case c.Prepare != nil:
		a.say(wire.WorkerEvent{WorkerRef: c.WorkerRef, Prepared: &wire.Prepared{}})
	case c.Save != nil:
		a.say(wire.WorkerEvent{WorkerRef: c.WorkerRef, Saved: &wire.Saved{
			Request: c.Save.Request, Checkpoint: wire.Origin{Queues: []wire.OriginQueue{{Name: "q", Superstep: 1}}},
		}})
	case c.Commit != nil:
		a.say(wire.WorkerEvent{WorkerRef: c.WorkerRef, Committed: &wire.Committed{}})
	case c.Cancel != nil || c.Exit != nil || c.Kill != nil:
		a.say(wire.WorkerEvent{WorkerRef: c.WorkerRef, Ended: &wire.Ended{}})
	}
}

// patience is how long the first job in the line may wait although slots could be had: for the time in
// which slots settle, and for the jobs that are being restarted.
const patience = 6 * time.Second

// check requires that the first job in the line does not wait for long for slots that it could have.
func (a *arrivals) check() {
	a.longest = max(a.longest, len(a.core.live))
	line := a.core.line()
	i := slices.IndexFunc(line, func(j *job) bool { return j.queued && j.info.State == wire.JobWaiting })
	if i < 0 {
		clear(a.waiting)
		return
	}
	first := line[i]
	have := 0
	for _, o := range a.core.offers() {
		have += o.Free
	}
	for _, j := range a.core.live {
		if j.info.State == wire.JobRunning && j.saves() {
			have += max(0, j.info.Parallelism-j.info.Allowed.Min)
		}
	}
	least, _ := first.wants()
	if since, ok := a.waiting[first.info.ID]; have < least || !ok {
		clear(a.waiting)
		a.waiting[first.info.ID] = a.now
	} else {
		require.LessOrEqual(a.t, a.now-since, patience, "%s waits for %d slots, and %d could be had", first.info.ID, least, have)
	}
}
