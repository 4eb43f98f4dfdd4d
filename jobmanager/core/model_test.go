package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestAnything passes random events to the core, including events that no real component would
// send, and checks the invariants after each event. After that the simulated task managers and
// clients behave correctly, and every job must end.
func TestAnything(t *testing.T) {
	for i := range rounds {
		t.Run(fmt.Sprint("round ", i), func(t *testing.T) { rapid.Check(t, live) })
	}
}

func live(t *rapid.T) {
	w := newWorld(t)
	t.Repeat(map[string]func(*rapid.T){
		"":         func(t *rapid.T) { w.check(t) },
		"register": w.register,
		"cut":      w.cut,
		"leave":    w.leave,
		"announce": w.announce,
		"beat":     w.beat,
		"submit":   w.submit,
		"cancel":   w.cancel,
		"shell":    w.shell,
		"advance":  w.advance,
		"advance2": w.advance, // a second entry, so that advance is drawn more often
		"advance3": w.advance,
		"report":   w.report,
		"orphan":   w.orphan,
		"lose":     w.lose,
		"keep":     w.keep,
		"cordon":   w.cordon,
		"die":      w.die,
		"save":     w.save,
		"drain":    w.drain,
		"scale":    w.scale,
		"tick":     w.tick,
		"flush":    func(*rapid.T) { w.flush(t, len(w.queue)) },
		"crash":    w.crash,
	})
	w.settle(t)
}

// manager is a simulated task manager.
type manager struct {
	id      string
	inc     int
	conn    int // number of its connection; 0 if it has none
	running map[wire.WorkerRef]bool
	told    map[wire.WorkerRef]bool // workers that have got a command to end
	kept    map[wire.WorkerRef]bool // workers whose processes wait
	leaving *wire.Leaving           // what this process has announced; nil if nothing
}

type world struct {
	core     *Core
	config   Config
	base     time.Duration // time at which the core was made
	now      time.Duration
	queue    []Persist // records that are not on disk yet
	disk     map[wire.JobID]wire.JobInfo
	kept     map[wire.JobID]Resumable // what is on disk besides disk
	count    int                      // number of jobs that were ever submitted
	conns    int
	managers []*manager
	byConn   map[int]*manager // number of a current or former connection -> its task manager
	jobs     []wire.JobID
	seen     map[wire.JobID]wire.JobState // the states that followers have seen
	stored   map[wire.JobID]wire.JobState
	may      map[wire.JobID]bool // jobs whose worker 0 may commit
	refs     []wire.WorkerRef    // all workers that have ever been deployed
	owner    map[wire.WorkerRef]*manager
	slots    map[wire.WorkerRef]int
	said     map[wire.WorkerRef]map[workerEvent]bool
	heard    map[wire.WorkerRef]time.Duration // time of the last message from the worker's task manager
	gone     map[wire.WorkerRef]bool          // workers whose end their task managers have reported
	commits  map[wire.WorkerRef]bool          // workers that were deployed to finish a commit
	prepares map[wire.WorkerRef]bool          // workers 0 that were told to prepare the sinks
	resumed  map[wire.JobID]int               // number of workers deployed to finish the commit
	restart  map[wire.JobID]wire.Restart

	priority  map[wire.JobID]int
	submitted map[wire.JobID]time.Duration
	goesOn    map[wire.JobID]bool // jobs whose attempt was ended so that they go on with other slots

	resolves map[wire.WorkerRef]bool        // workers that were deployed to resolve a graph
	takers   map[wire.WorkerRef]bool        // workers that only take rows for the next attempt
	computed map[wire.JobID]bool            // jobs that have been committing
	cordoned map[string]bool                // names of task managers
	drained  map[string]wire.Cordon         // names of those of them that are drained
	leaves   map[*taskManager]time.Duration // task managers that leave, and the counted time at which their jobs must have left
	avoids   reference
	asked    []wire.WorkerCommand // requests for checkpoints that reached task managers or were lost
	requests int                  // number of the last request of a client
	awaited  map[int]bool         // requests of clients that are not answered
}

func newWorld(t *rapid.T) *world {
	config := Config{
		DeployTimeout: 20 * time.Second, KillAfter: 3 * time.Second, Keep: 5, Settle: time.Second, ScaleInterval: 2 * time.Second, Ageing: 3 * time.Second,
		Policy: Policy(rapid.IntRange(0, 1).Draw(t, "policy")),
	}
	w := &world{
		core: New(config), config: config, disk: map[wire.JobID]wire.JobInfo{}, kept: map[wire.JobID]Resumable{},
		byConn: map[int]*manager{},
		seen:   map[wire.JobID]wire.JobState{}, stored: map[wire.JobID]wire.JobState{}, may: map[wire.JobID]bool{},
		owner: map[wire.WorkerRef]*manager{}, slots: map[wire.WorkerRef]int{}, said: map[wire.WorkerRef]map[workerEvent]bool{},
		heard: map[wire.WorkerRef]time.Duration{}, gone: map[wire.WorkerRef]bool{}, commits: map[wire.WorkerRef]bool{}, prepares: map[wire.WorkerRef]bool{}, resumed: map[wire.JobID]int{}, restart: map[wire.JobID]wire.Restart{},
		priority: map[wire.JobID]int{}, submitted: map[wire.JobID]time.Duration{}, goesOn: map[wire.JobID]bool{},
		resolves: map[wire.WorkerRef]bool{}, takers: map[wire.WorkerRef]bool{}, computed: map[wire.JobID]bool{},
		cordoned: map[string]bool{}, drained: map[string]wire.Cordon{}, leaves: map[*taskManager]time.Duration{}, avoids: newReference(), awaited: map[int]bool{},
	}
	for i := range 3 {
		w.managers = append(w.managers, &manager{id: fmt.Sprint("m", i), running: map[wire.WorkerRef]bool{}, told: map[wire.WorkerRef]bool{}, kept: map[wire.WorkerRef]bool{}})
	}
	return w
}

// byID returns the task manager with the given ID.
func (w *world) byID(id string) *manager {
	return w.managers[slices.IndexFunc(w.managers, func(m *manager) bool { return m.id == id })]
}

func (w *world) some(t *rapid.T) *manager { return rapid.SampledFrom(w.managers).Draw(t, "manager") }

// step passes an event to the core, and checks and carries out each effect.
func (w *world) step(t require.TestingT, e Event) {
	w.hear(e)
	w.mourn(e)
	effects := w.core.Step(w.now-w.base, e)
	w.heed(e)
	w.perform(t, effects)
}

// perform checks and carries out effects.
func (w *world) perform(t require.TestingT, effects []Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case Send:
			w.deliver(t, e)
		case Disconnect:
			for _, m := range w.managers {
				if m.conn == e.Conn {
					m.conn = 0
				}
			}
		case Persist:
			_, known := w.stored[e.Job.ID]
			w.stored[e.Job.ID] = e.Job.State
			require.True(t, known || e.Spec != nil, "the first record must have the specification")
			require.Equal(t, e.Job.State.Ended(), e.Continuation == nil)
			require.Equal(t, e.Job.State == wire.JobCommitting && w.seen[e.Job.ID] != wire.JobCommitting, e.Barrier && !e.Retry)
			if e.Retry && e.Job.State != wire.JobRunning {
				w.placed(t, e)
			}
			w.queue = append(w.queue, e)
		case SaveAnswered:
			require.True(t, w.awaited[e.Request], "a request must be answered once")
			delete(w.awaited, e.Request)
		case Changed:
			w.changed(t, e.Job)
		case Forget:
			require.True(t, w.seen[e.ID].Ended())
			w.jobs = slices.DeleteFunc(w.jobs, func(id wire.JobID) bool { return id == e.ID })
			w.queue = slices.DeleteFunc(w.queue, func(p Persist) bool { return p.Job.ID == e.ID })
			delete(w.disk, e.ID)
			delete(w.kept, e.ID)
		}
	}
}

// hear records, from an event of a task manager, which of its workers run and which have ended.
func (w *world) hear(e Event) {
	var n *taskManager
	var running []wire.WorkerRef
	all := false // running has all workers of n
	switch e := e.(type) {
	case Registered:
		n = w.core.taskManagers[e.ID]
		if n != nil && (n.Incarnation != e.Incarnation || n.Slots != e.Slots || w.core.conns[e.Conn] != nil || w.core.unfit(&e.Register) != "") {
			n = nil // the registration is refused or is that of another process, so it renews no lease
		}
		running, all = e.Running, true
	case Heartbeat:
		n, running, all = w.core.conns[e.Conn], e.Running, true
	case Reported:
		w.hearKept(e)
		if n = w.core.conns[e.Conn]; n != nil && n.workers[e.WorkerRef] != nil && e.Ended != nil {
			w.gone[e.WorkerRef] = true
		}
	case Left:
		n, all = w.core.conns[e.Conn], true
	}
	if n == nil {
		return
	}
	for ref, k := range n.workers {
		if k.pending != nil {
			continue
		}
		w.heard[ref] = w.now
		if all && !slices.Contains(running, ref) {
			w.gone[ref] = true
		}
	}
}

// resumes is called when worker ref is deployed to finish a commit. It requires that no former
// worker can still commit.
func (w *world) resumes(t require.TestingT, ref wire.WorkerRef) {
	for _, before := range w.refs {
		if before.Job != ref.Job || before.Worker != 0 || before.Attempt >= ref.Attempt || w.resolves[before] {
			continue
		}
		if !w.gone[before] && (!overlaps(ref.Job) || w.said[before][saidFinished] || w.commits[before]) {
			require.GreaterOrEqual(t, w.now-w.heard[before], w.core.config.Lease, "the lease of the former worker %s must have lapsed", before)
		}
		for _, n := range w.core.order {
			require.NotContains(t, n.workers, before)
		}
	}
	require.Equal(t, wire.JobCommitting, w.stored[ref.Job])
	require.True(t, w.may[ref.Job], "the job must be recorded as committing before another worker may commit")
	w.commits[ref] = true
	w.resumed[ref.Job]++
	require.LessOrEqual(t, w.resumed[ref.Job], resumeTries)
}

// overlaps reports whether the workers of a job say that its attempts may overlap.
func overlaps(id wire.JobID) bool { return id != "" && id[len(id)-1]%2 == 0 }

// alone is called when worker ref is deployed to run or to resolve. It requires that no worker of
// an earlier attempt that ran can be left, unless attempts of the job may overlap, that no worker of
// an earlier attempt may commit, and that the restart strategy allows the attempt. A worker that was
// not told to prepare the sinks does not count, and neither does a giver or a taker, as these write nothing.
func (w *world) alone(t require.TestingT, ref wire.WorkerRef) {
	for _, before := range w.refs {
		if before.Job != ref.Job || before.Attempt == ref.Attempt || w.resolves[before] {
			continue
		}
		if !w.gone[before] && !overlaps(ref.Job) && w.slots[before] > 0 && w.prepares[wire.WorkerRef{Job: before.Job, Attempt: before.Attempt}] {
			require.GreaterOrEqual(t, w.now-w.heard[before], w.core.config.Lease, "the lease of the former worker %s must have lapsed", before)
		}
		for _, n := range w.core.order {
			require.NotContains(t, n.workers, before, "two attempts must never run at once on task managers that are not lost")
		}
	}
	require.False(t, w.may[ref.Job], "no attempt may begin after one that may commit")
	info, _ := w.core.Job(ref.Job)
	require.LessOrEqual(t, info.Restarts, len(info.Lost), "drains are no restarts")
	switch r := w.restart[ref.Job]; {
	case r.Strategy == wire.RestartNone:
		require.Zero(t, info.Restarts)
	case r.Attempts > 0 && r.Strategy != wire.RestartFailureRate:
		require.LessOrEqual(t, info.Restarts, r.Attempts)
	}
	for _, lost := range info.Lost {
		require.Less(t, lost.Number, ref.Attempt)
	}
}

// userError is the message of errors that workers report and that are not losses.
const userError = "an error of user code"

// offered returns the number of slots of task managers that take new work, free or in use.
func (w *world) offered() (slots int) {
	for i, o := range w.core.offers() {
		if !w.cordoned[o.ID] && !w.departs(w.core.order[i]) {
			slots += o.Slots
		}
	}
	return slots
}

// deliver performs a Send: it passes the message to the task manager, if the connection is
// still open.
func (w *world) deliver(t require.TestingT, e Send) {
	m := w.byConn[e.Conn]
	arrives := m.conn == e.Conn
	if d := e.Message.Deploy; d != nil {
		require.NotContains(t, w.said, d.WorkerRef, "deployed twice")
		require.Equal(t, d.Attempt, w.disk[d.Job].Attempt, "an attempt must be on record before its workers are deployed")
		if d.Mode == wire.CommitMode {
			w.resumes(t, d.WorkerRef)
		} else {
			w.alone(t, d.WorkerRef)
		}
		if arrives {
			m.running[d.WorkerRef] = true
			m.takes(d)
		}
		w.refs = append(w.refs, d.WorkerRef)
		w.resolves[d.WorkerRef], w.takers[d.WorkerRef] = d.Mode == wire.ResolveMode, d.Holds > 0
		w.owner[d.WorkerRef] = m
		w.slots[d.WorkerRef] = d.Slots[d.Worker].Hi - d.Slots[d.Worker].Lo
		w.said[d.WorkerRef] = map[workerEvent]bool{}
	}
	if c := e.Message.Worker; c != nil {
		switch {
		case c.Kill != nil || c.Cancel != nil || c.Exit != nil:
			if !arrives {
				return
			}
			delete(m.kept, c.WorkerRef)
			m.told[c.WorkerRef] = true
			if slots, known := w.slots[c.WorkerRef]; c.Exit != nil && known && slots == 0 && w.seen[c.Job] == wire.JobRunning && c.WorkerRef.Worker < len(w.disk[c.Job].Workers) {
				require.True(t, w.disk[c.Job].Workers[c.WorkerRef.Worker].Left, "it must be on record that the attempt goes on without giver %s", c.WorkerRef)
			}
		case c.Save != nil:
			require.Equal(t, 0, c.WorkerRef.Worker)
			require.True(t, w.said[c.WorkerRef][saidPrepared], "only a running job has a state")
			w.asked = append(w.asked, *c)
		case c.Commit != nil:
			require.True(t, w.may[c.Job], "the job must be recorded as committing before it commits")
			require.Equal(t, 0, c.WorkerRef.Worker)
			require.Equal(t, w.core.jobs[c.Job].info.Attempt, c.Attempt)
		case c.Prepare != nil:
			w.prepares[c.WorkerRef] = true
		case c.Start != nil:
			for _, ref := range w.refs {
				if ref.Job == c.Job && ref.Attempt == c.Attempt && !w.takers[ref] {
					require.True(t, w.said[ref][saidReady], "worker %s must be ready before the job is started", ref)
				}
			}
			require.True(t, w.said[wire.WorkerRef{Job: c.Job, Attempt: c.Attempt}][saidPrepared])
			w.noneKept(t, c.WorkerRef)
		}
	}
}

// changed requires that followers see only transitions that jobTable contains. Failing and
// cancelling may be skipped if the job has no workers that must end first.
func (w *world) changed(t require.TestingT, j wire.JobInfo) {
	if c := j.Checkpoints; c != nil {
		require.LessOrEqual(t, len(c.Newest), min(c.Written, wire.MaxCheckpointsTold))
	}
	before, known := w.seen[j.ID]
	w.seen[j.ID] = j.State
	if j.State == wire.JobRestarting {
		require.False(t, w.computed[j.ID], "a job whose workers have all finished must not be restarted")
		last := j.Lost[len(j.Lost)-1]
		require.Equal(t, j.Attempt, last.Number)
		require.NotContains(t, last.Cause, userError, "an error of user code must not restart a job")
		w.goesOn[j.ID] = strings.Contains(j.Detail, fmt.Sprintf("attempt %d has ended: ", j.Attempt)) || w.goesOn[j.ID] && before == j.State
	}
	w.computed[j.ID] = w.computed[j.ID] || j.State == wire.JobCommitting
	require.Equal(t, w.stored[j.ID], j.State, "a state must be recorded before followers get it")
	if !known || before == j.State {
		require.False(t, known && before.Ended(), "followers must get no event of a job that had ended")
		return
	}
	for e := range jobEvents {
		next, ok := jobTable.next(before, jobEvent(e))
		last, passed := jobTable.next(next, jobEmptied)
		if ok && (next == j.State || passed && last == j.State) {
			return
		}
	}
	require.Fail(t, "followers must get only transitions of jobTable", "%s from %s to %s", j.ID, before, j.State)
}

// check requires that the core's state agrees with the workers that the simulated task managers
// run.
func (w *world) check(t require.TestingT) {
	processes := map[wire.JobID]int{}
	free := 0
	for _, n := range w.core.order {
		used := 0
		lied := false // it has said that a worker ended, and lists it now
		for ref, k := range n.workers {
			lied = lied || w.gone[ref]
			if k.pending != nil {
				w.owner[ref], w.slots[ref] = w.byID(n.ID), k.slots
			}
			require.Equal(t, n.ID, w.owner[ref].id)
			if used += w.slots[ref]; k.takes { // its deployment does not say which slots it holds for the next attempt
				used += k.slots - w.slots[ref]
			}
			processes[ref.Job]++
		}
		require.Equal(t, used, n.used)
		if n.patience == 0 && !lied { // otherwise some of its workers may have ended since they were put on record
			require.LessOrEqual(t, used, n.Slots, "a slot must not be given to two workers")
		}
		if n.state == TaskManagerAlive && !w.cordoned[n.ID] && !w.departs(n) {
			free += max(0, n.Slots-used)
		}
		require.Equal(t, w.avoids.until[n.ID] > w.core.clock.Counted(), w.core.avoidedInfo(n) != nil, n.ID)
		require.Equal(t, n.conn != 0, n.state != TaskManagerAway)
		w.checkLeaving(t, n)
	}
	require.Equal(t, free, w.core.Overview().Free)
	for _, n := range w.core.gone {
		require.Empty(t, n.workers)
	}
	for _, id := range w.jobs {
		j := w.core.jobs[id]
		require.Equal(t, processes[id], j.processes)
		require.Equal(t, w.seen[id], j.info.State)
		if s := j.info.State; s == wire.JobFailed || s == wire.JobCancelled || s == wire.JobWaiting && (j.info.Attempt == 0 || j.info.Restarts > 0) {
			require.Zero(t, processes[id], "job %s is %s and must not have workers", id, s)
		}
		require.Equal(t, j.info.State == wire.JobFailed || j.info.State == wire.JobFailing, j.info.Failure != nil)
		require.Equal(t, !j.info.State.Ended() || processes[id] > 0, slices.Contains(w.core.live, j))
	}
	require.Len(t, w.core.jobs, len(w.jobs))
	w.checkKept(t)
	w.core.Jobs()
	w.core.TaskManagers(w.now)
}

func (w *world) register(t *rapid.T) {
	m := w.some(t)
	if rapid.IntRange(0, 3).Draw(t, "restarted") == 0 {
		m.inc++
		m.leaving = nil
		clear(m.kept)
		if rapid.Bool().Draw(t, "clean") {
			clear(m.running)
		}
	}
	r := wire.Register{Version: wire.Version, ID: m.id, Incarnation: fmt.Sprint(m.inc), Slots: 3, Memory: 300, Executable: anyHash, Leaving: m.leaving, Kept: m.lists()}
	switch rapid.IntRange(0, 9).Draw(t, "odd") {
	case 0:
		r.Version++
	case 1:
		r.Slots = rapid.SampledFrom([]int{-1, 0, 4, 1 << 40}).Draw(t, "slots")
	case 2:
		r.Running = []wire.WorkerRef{{Job: "x", Attempt: 1}}
	}
	r.Running = append(r.Running, w.has(t, m)...)
	if rapid.IntRange(0, 9).Draw(t, "again") > 0 || m.conn == 0 {
		w.conns++
		m.conn = w.conns
		w.byConn[m.conn] = m
	}
	w.step(t, Registered{Conn: m.conn, Register: r})
}

// has returns the workers that task manager m reports as running. The report is sometimes
// wrong.
func (w *world) has(t *rapid.T, m *manager) []wire.WorkerRef {
	all := slices.SortedFunc(maps.Keys(m.running), compareRefs)
	if len(all) > 0 && rapid.IntRange(0, 5).Draw(t, "lies") == 0 {
		return all[1:]
	}
	return all
}

func (w *world) cut(t *rapid.T) {
	m := w.some(t)
	conn := m.conn
	m.conn = 0
	w.step(t, Disconnected{Conn: conn})
	if rapid.IntRange(0, 2).Draw(t, "ended") == 0 {
		w.step(t, ProcessEnded{ID: m.id, Incarnation: fmt.Sprint(m.inc - rapid.IntRange(0, 1).Draw(t, "former"))})
	}
}

func (w *world) leave(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "really") > 0 {
		return
	}
	m := w.some(t)
	conn := m.conn
	m.conn = 0
	clear(m.running)
	w.step(t, Left{Conn: conn})
}

func (w *world) beat(t *rapid.T) {
	m := w.some(t)
	if rapid.IntRange(0, 9).Draw(t, "nobody took them") == 0 {
		clear(m.kept)
	}
	w.step(t, Heartbeat{Conn: m.conn, Heartbeat: wire.Heartbeat{Running: w.has(t, m), Kept: m.lists()}})
}

// newID returns the ID of the next job. IDs are in the order of submission.
func (w *world) newID() wire.JobID {
	w.count++
	id := wire.JobID(fmt.Sprintf("j%04d", w.count))
	w.submitted[id] = w.now
	return id
}

func (w *world) submit(t *rapid.T) {
	id := w.newID()
	spec := wire.JobSpec{Priority: rapid.IntRange(-1, 1).Draw(t, "priority")}
	w.priority[id] = spec.Priority
	if rapid.IntRange(0, 3).Draw(t, "bounded") == 0 {
		spec.WaitTimeout = 2 * time.Second
	}
	spec.Restart = wire.Restart{
		Strategy: wire.RestartStrategy(rapid.IntRange(0, int(wire.RestartNone)).Draw(t, "restart")),
		Attempts: rapid.IntRange(0, 2).Draw(t, "attempts"),
		Delay:    time.Duration(rapid.IntRange(0, 3).Draw(t, "delay")) * 500 * time.Millisecond,
	}
	if rapid.Bool().Draw(t, "checkpoints") {
		spec.Run.Checkpoints = &wire.Checkpoints{Dir: "/shared"}
	}
	w.restart[id] = spec.Restart.WithDefaults()
	w.jobs = append(w.jobs, id)
	slots := rapid.IntRange(0, 8).Draw(t, "slots")
	if rapid.Bool().Draw(t, "elastic") {
		spec.Parallelism, spec.Shards, spec.Graph = max(slots, 1), 8, []byte("graph")
		spec.MinParallelism = rapid.IntRange(1, spec.Parallelism).Draw(t, "least")
	}
	w.step(t, Submitted{ID: id, Spec: spec, Slots: slots})
	w.step(t, Submitted{ID: id, Slots: 1})
}

func (w *world) job(t *rapid.T) wire.JobID {
	return rapid.SampledFrom(append([]wire.JobID{"none"}, w.jobs...)).Draw(t, "job")
}

func (w *world) cancel(t *rapid.T) {
	if rapid.IntRange(0, 2).Draw(t, "really") == 0 {
		w.step(t, CancelAsked{ID: w.job(t)})
	}
}

// shell answers Compile and Persist effects, as the Manager does.
func (w *world) shell(t *rapid.T) {
	id := w.job(t)
	if rapid.Bool().Draw(t, "compiled") {
		e := Compiled{ID: id, Slots: rapid.IntRange(0, 8).Draw(t, "slots")}
		if rapid.IntRange(0, 5).Draw(t, "fails") == 0 {
			e.Err = fmt.Errorf("no")
		}
		w.step(t, e)
		return
	}
	if rapid.IntRange(0, 9).Draw(t, "stale") == 0 {
		w.step(t, Persisted{ID: id, Attempt: 99})
		return
	}
	for range rapid.IntRange(0, len(w.queue)).Draw(t, "writes") {
		if len(w.queue) > 0 {
			w.write(t, rapid.IntRange(0, 5).Draw(t, "full") == 0)
		}
	}
}

// say reports an event of a worker on a connection.
func (w *world) say(t *rapid.T, conn int, ref wire.WorkerRef, what workerEvent) {
	e := wire.WorkerEvent{WorkerRef: ref}
	switch what {
	case saidReady:
		e.Ready = &wire.Ready{Address: "h:1", Fingerprint: "f", Overlaps: overlaps(ref.Job)}
	case saidResolved:
		e.Resolved = &wire.Resolved{}
	case saidPrepared:
		e.Prepared = &wire.Prepared{}
	case saidFinished:
		e.Finished = &wire.Finished{}
	case saidCommitted:
		e.Committed = &wire.Committed{}
	case saidFailed:
		e.Failed = &wire.Failure{Kind: wire.FailureKind(rapid.IntRange(0, 4).Draw(t, "kind")), Message: "m"}
		if e.Failed.Kind != wire.PeerFailure {
			e.Failed.Message = userError
		}
	case toldStart:
		if rapid.Bool().Draw(t, "wrote") {
			e.Checkpointed = checkpointedReport(rapid.IntRange(0, 30).Draw(t, "written"), rapid.IntRange(0, 3).Draw(t, "failed"), "full")
			break
		}
		e.Progress = &wire.Progress{Vertices: make([]wire.VertexProgress, rapid.IntRange(0, 3).Draw(t, "vertices"))}
	case processEnded:
		e.Ended = &wire.Ended{Kept: rapid.IntRange(0, 2).Draw(t, "kept") == 0}
		if !e.Ended.Kept && rapid.Bool().Draw(t, "badly") {
			e.Ended.Failure = &wire.Failure{Kind: wire.LostFailure, Signal: "killed", ExitCode: -1}
			e.Ended.Crashed = rapid.Bool().Draw(t, "crashed")
		}
	}
	if said := w.said[ref]; said != nil {
		said[what] = true
	}
	w.step(t, Reported{Conn: conn, WorkerEvent: e})
}

// advance makes a worker report an event that a correct worker could report next.
func (w *world) advance(t *rapid.T) {
	m := w.some(t)
	all := slices.SortedFunc(maps.Keys(m.running), compareRefs)
	if len(all) == 0 {
		return
	}
	ref := rapid.SampledFrom(all).Draw(t, "worker")
	if m.told[ref] && rapid.Bool().Draw(t, "obeys") {
		delete(m.running, ref)
		w.say(t, m.conn, ref, processEnded)
		return
	}
	w.goOn(t, m, ref)
}

// goOn makes a worker report an event of its normal life that could come next.
func (w *world) goOn(t *rapid.T, m *manager, ref wire.WorkerRef) {
	for _, n := range w.core.order {
		if k := n.workers[ref]; k != nil {
			for _, e := range []workerEvent{saidResolved, saidReady, saidPrepared, saidFinished, saidCommitted} {
				if _, ok := workerTable.next(k.state, e); ok && k.expects(e) {
					w.say(t, m.conn, ref, e)
					return
				}
			}
		}
	}
}

// orphan ends the process of a worker that commits or is about to commit, or disconnects its
// task manager for a while. The other workers continue.
func (w *world) orphan(t *rapid.T) {
	w.end(t, func(ref wire.WorkerRef) bool { return w.seen[ref.Job] == wire.JobCommitting && ref.Worker == 0 })
}

// lose does the same to a worker of a job that is deployed or runs.
func (w *world) lose(t *rapid.T) {
	w.end(t, func(ref wire.WorkerRef) bool {
		return w.seen[ref.Job] == wire.JobDeploying || w.seen[ref.Job] == wire.JobRunning
	})
}

// end ends the process of the first worker that fits, or disconnects its task manager for a
// while.
func (w *world) end(t *rapid.T, fits func(wire.WorkerRef) bool) {
	for _, m := range w.managers {
		for _, ref := range slices.SortedFunc(maps.Keys(m.running), compareRefs) {
			if m.conn == 0 || !fits(ref) {
				continue
			}
			if rapid.Bool().Draw(t, "cut") {
				conn := m.conn
				m.conn = 0
				w.step(t, Disconnected{Conn: conn})
				w.live(t, rapid.IntRange(20, 250).Draw(t, "ticks"))
				return
			}
			delete(m.running, ref)
			w.step(t, Reported{Conn: m.conn, WorkerEvent: wire.WorkerEvent{WorkerRef: ref, Ended: &wire.Ended{
				Failure: &wire.Failure{Kind: wire.LostFailure, Signal: "killed", ExitCode: -1}, Crashed: true,
			}}})
			w.live(t, rapid.IntRange(0, 30).Draw(t, "ticks"))
			return
		}
	}
}

// live advances time by a number of ticks, while all connected task managers obey their
// commands.
func (w *world) live(t *rapid.T, ticks int) {
	for range ticks {
		w.now += TickEvery
		for _, m := range w.managers {
			if m.conn == 0 {
				continue
			}
			for _, ref := range slices.SortedFunc(maps.Keys(m.running), compareRefs) {
				if m.told[ref] {
					delete(m.running, ref)
					w.step(t, Reported{Conn: m.conn, WorkerEvent: wire.WorkerEvent{WorkerRef: ref, Ended: &wire.Ended{}}})
				}
			}
			w.step(t, Heartbeat{Conn: m.conn, Heartbeat: wire.Heartbeat{Running: slices.SortedFunc(maps.Keys(m.running), compareRefs), Kept: m.lists()}})
		}
		w.flush(t, len(w.queue))
		w.step(t, Tick{})
		w.check(t)
	}
}

// report makes a task manager send an arbitrary report of an arbitrary worker.
func (w *world) report(t *rapid.T) {
	ref := rapid.SampledFrom(append([]wire.WorkerRef{{Job: "x"}, {}}, w.refs...)).Draw(t, "worker")
	conn := rapid.IntRange(-1, w.conns+1).Draw(t, "conn")
	what := workerEvent(rapid.IntRange(0, int(managerLost)).Draw(t, "what"))
	if m := w.owner[ref]; m != nil && rapid.Bool().Draw(t, "right") {
		conn = m.conn
		if what == processEnded {
			delete(m.running, ref)
		}
	}
	w.say(t, conn, ref, what)
}

func (w *world) tick(t *rapid.T) {
	for range rapid.IntRange(1, 25).Draw(t, "ticks") {
		w.now += TickEvery
		w.step(t, Tick{})
	}
}

// settle cancels all jobs, and lets task managers obey their commands. It requires that all
// workers then end and all slots become free.
func (w *world) settle(t *rapid.T) {
	for _, id := range slices.Clone(w.jobs) {
		w.step(t, CancelAsked{ID: id, Reason: "settle"})
	}
	for id := range w.cordoned {
		delete(w.cordoned, id)
		delete(w.drained, id)
		w.step(t, Uncordoned{TaskManager: id})
	}
	for range 300 {
		w.now += TickEvery
		for _, m := range w.managers {
			if m.conn == 0 {
				continue
			}
			for _, ref := range slices.SortedFunc(maps.Keys(m.told), compareRefs) {
				delete(m.told, ref)
				delete(m.running, ref)
				w.step(t, Reported{Conn: m.conn, WorkerEvent: wire.WorkerEvent{WorkerRef: ref, Ended: &wire.Ended{}}})
			}
			w.step(t, Heartbeat{Conn: m.conn, Heartbeat: wire.Heartbeat{Running: slices.Collect(maps.Keys(m.running)), Kept: m.lists()}})
		}
		w.flush(t, len(w.queue))
		w.step(t, Tick{})
		w.check(t)
	}
	require.Empty(t, w.core.live, "all jobs must end")
	o := w.core.Overview()
	require.Equal(t, o.Slots-o.Cordoned, o.Free, "all slots must become free, except those of task managers that leave")
	for _, m := range w.managers {
		if m.conn != 0 && w.core.conns[m.conn] != nil {
			require.Empty(t, m.running, "orphans")
		}
	}
	require.LessOrEqual(t, len(w.jobs), 5)
}
