package core

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/wire"
)

func (w *world) register(t *rapid.T) {
	m := w.some(t)
	if rapid.IntRange(0, 3).Draw(t, "restarted") == 0 {
		m.inc++
		m.leaving = nil
		if rapid.Bool().Draw(t, "clean") {
			clear(m.running)
		}
	}
	r := wire.Register{Version: wire.Version, ID: m.id, Incarnation: fmt.Sprint(m.inc), Slots: 3, Memory: 300, Executable: anyHash, Leaving: m.leaving}
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
	w.step(t, Heartbeat{Conn: m.conn, Heartbeat: wire.Heartbeat{Running: w.has(t, m)}})
}

// newID returns the ID of the next job. IDs are in the order of submission.
func (w *world) newID() wire.JobID {
	w.count++
	return wire.JobID(fmt.Sprintf("j%04d", w.count))
}

func (w *world) submit(t *rapid.T) {
	id := w.newID()
	spec := wire.JobSpec{}
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
		e.Ended = &wire.Ended{}
		if rapid.Bool().Draw(t, "badly") {
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
			w.step(t, Heartbeat{Conn: m.conn, Heartbeat: wire.Heartbeat{Running: slices.SortedFunc(maps.Keys(m.running), compareRefs)}})
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
			w.step(t, Heartbeat{Conn: m.conn, Heartbeat: wire.Heartbeat{Running: slices.Collect(maps.Keys(m.running))}})
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
