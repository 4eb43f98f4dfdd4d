package simulation

import (
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/silence"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/taskmanager/core"
)

// Times of task managers. The first is the time without frames after which a worker is killed.
const (
	workerSilence   = 1500 * time.Millisecond
	grace           = 25 * time.Second
	registerTimeout = 10 * time.Second
	leaveTimeout    = 2 * time.Second
)

var lifeTable = core.LifeTable()

// host is the machine of a task manager.
type host struct {
	w       *world
	machine *machine
	slots   int
	tm      *taskManager // nil while none runs
	starts  int
}

// taskManager is a process of a task manager.
type taskManager struct {
	*process
	host        *host
	incarnation string
	outbox      *core.Outbox
	backoff     *core.Backoff
	lease       core.Lease
	leased      bool
	turns       silence.Clock
	turnsOf     int // number of the lease whose turns are being ticked

	side     *side // nil if there is no connection
	joined   bool
	dial     int // number of the attempt to connect
	beatEach time.Duration
	cluster  string
	broke    string

	workers  map[wire.WorkerRef]*tmWorker
	kept     []*keptChild
	states   map[jobID]stateFiles
	launched []*workerProcess
	leaving  bool
	left     bool
	stopping bool
}

// start starts a task manager.
func (h *host) start() {
	w := h.w
	if h.tm != nil || h.machine.off {
		return
	}
	h.starts++
	m := &taskManager{
		process: w.newProcess(h.machine, fmt.Sprintf("%s(%d)", h.machine.name, h.starts)), host: h,
		incarnation: fmt.Sprint(h.starts), outbox: core.NewOutbox(), backoff: core.NewBackoff(w.draw.Uint64() | 1),
		workers: make(map[wire.WorkerRef]*tmWorker), states: make(map[jobID]stateFiles),
	}
	h.tm = m
	m.died = append(m.died, func() {
		h.tm = nil
		for _, x := range m.children() { // the kernel kills them with their parent
			x.kill()
		}
	})
	w.say("%s starts", m.name)
	m.connect()
}

// children returns the processes of workers that are alive, in the order in which they were started.
func (m *taskManager) children() (all []*process) {
	for _, c := range m.launched {
		if !c.dead {
			all = append(all, c.process)
		}
	}
	return all
}

// launch starts a process for a worker.
func (m *taskManager) launch() *workerProcess {
	m.launched = slices.DeleteFunc(m.launched, func(c *workerProcess) bool { return c.dead })
	c := newWorkerProcess(m)
	m.launched = append(m.launched, c)
	return c
}

// inOrder returns the workers in a fixed order.
func (m *taskManager) inOrder() []*tmWorker {
	all := make([]*tmWorker, 0, len(m.workers))
	for _, t := range m.workers {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b *tmWorker) int { return compareRefs(a.ref, b.ref) })
	return all
}

// connect tries to reach the job manager.
func (m *taskManager) connect() {
	m.dial++
	dial, w, h := m.dial, m.w, m.w.manager
	again := func(why string) {
		if m.dial == dial && !m.left {
			m.dial++
			m.after(m.backoff.Wait(), m.connect)
		}
	}
	w.after(w.delay(m.machine, h.machine), func() {
		reached := w.net.reaches(m.machine, h.machine) && w.net.reaches(h.machine, m.machine)
		switch {
		case m.dead:
		case !reached:
			m.after(w.between(time.Second, 3*time.Second), func() { again("no answer") })
		case h.jm == nil:
			m.after(w.delay(h.machine, m.machine), func() { again("connection refused") })
		default:
			c := w.connect(m.process, h.jm.process)
			h.jm.accept(c.side[1], m.process)
			m.do(func() { m.register(c.side[0], again) })
		}
	})
}

// register registers on a new connection.
func (m *taskManager) register(s *side, again func(string)) {
	m.side, m.joined = s, false
	s.hear = func(message any) { m.hear(s, message.(wire.ToTaskManager), again) }
	s.ended = func(why string) { m.broken(s, why, again) }
	s.send(&wire.FromTaskManager{Register: &wire.Register{
		Version: wire.Version, Build: "sim", ID: m.machine.name, Incarnation: m.incarnation, Name: m.machine.name, Host: m.machine.name,
		Slots: m.host.slots, Memory: int64(m.host.slots) << 30, Executable: executable, Broke: m.broke,
		Running: m.outbox.Reconnect(), Kept: m.listsKept(), Leaving: m.outbox.Announcement(),
	}})
	m.after(registerTimeout, func() {
		if m.side == s && !m.joined {
			s.close("the registration was not answered")
			m.broken(s, "the registration was not answered", again)
		}
	})
}

// broken is called when a connection has ended.
func (m *taskManager) broken(s *side, why string, again func(string)) {
	if m.side != s {
		return
	}
	if m.joined {
		m.broke = why
		m.backoff.Reset()
	}
	m.side, m.joined = nil, false
	m.lease.Lost()
	again(why)
}

// hear acts on a message of the job manager.
func (m *taskManager) hear(s *side, message wire.ToTaskManager, again func(string)) {
	switch {
	case m.side != s:
	case message.Registered != nil:
		m.accepted(s, message.Registered)
	case message.Refused != nil:
		s.close("refused")
		m.broken(s, message.Refused.Reason, again)
		if message.Refused.Final {
			m.w.violated("task manager %s was refused: %s", m.name, message.Refused.Reason)
		}
	case message.Ack != nil:
		m.outbox.Acknowledged(message.Ack.Number)
		m.lease.Acknowledged(message.Ack.Number)
		m.forgetFiles(message.Ack.Over)
		m.mayLeave()
	case message.Deploy != nil:
		m.deploy(message.Deploy)
	case message.Worker != nil:
		m.command(message.Worker)
	}
}

// accepted is called when the job manager has accepted the registration.
func (m *taskManager) accepted(s *side, r *wire.Registered) {
	before := m.cluster
	m.cluster, m.joined = r.Cluster, true
	m.lease.Renew(r.Lease)
	m.leased = true
	m.turnsOf++
	m.turns = core.NewTurns(r.Lease, m.w.now)
	m.tickLease(m.turnsOf)
	m.beatEach = r.Heartbeat
	if before != "" && before != r.Cluster {
		m.outbox.Repeat()
		m.w.marks["a task manager registers with another job manager"]++
	}
	m.beat(s)
	m.mayLeave()
}

// beat sends a heartbeat, and then one after the other.
func (m *taskManager) beat(s *side) {
	if m.side != s || !m.joined {
		return
	}
	m.outbox.Beat()
	m.flush()
	m.after(m.beatEach, func() { m.beat(s) })
}

// flush sends what waits in the outbox.
func (m *taskManager) flush() {
	for m.joined {
		message := m.outbox.Pop()
		if message == nil {
			return
		}
		if message.Heartbeat != nil {
			message.Heartbeat.Kept = m.listsKept()
			m.lease.Beats(message.Heartbeat.Number)
			message.Heartbeat.States = m.withFiles()
		}
		m.side.send(message)
		if message.Leave != nil {
			m.left = true
			m.side.close("closed its connection")
			m.w.after(0, m.kill)
			return
		}
	}
}

// tell reports an event of a worker.
func (m *taskManager) tell(e wire.WorkerEvent) {
	m.outbox.Put(e)
	m.flush()
}

// tickLease advances the lease, and kills the workers when it has lapsed.
func (m *taskManager) tickLease(of int) {
	m.after(m.turns.Period, func() {
		if m.turnsOf != of || !m.leased {
			return
		}
		m.lease.Tick(m.turns.Tick(m.w.now))
		if !m.lease.Lapsed() {
			m.tickLease(of)
			return
		}
		m.leased = false
		m.w.say("%s: the lease has lapsed", m.name)
		m.w.marks["a lease lapses"]++
		m.outbox.Forget()
		m.killAll(wire.UnheardFailure, "no message of the job manager came for the time of the lease")
		if s := m.side; s != nil {
			s.close("no message came")
			s.ended("no message of the job manager came")
		}
	})
}

// killAll kills all workers and kept processes.
func (m *taskManager) killAll(kind wire.FailureKind, why string) {
	for _, t := range m.inOrder() {
		t.step(core.Stopped, &wire.Failure{Kind: kind, Message: why})
	}
	for len(m.kept) > 0 {
		m.kept[0].end(true)
	}
}

// leave is what SIGTERM does: the task manager announces that it leaves, and stays while its jobs go
// on elsewhere.
func (m *taskManager) leave(within time.Duration) {
	if m.leaving {
		return
	}
	m.leaving = true
	m.w.say("%s leaves within %v", m.name, within)
	by := m.w.now + within
	m.outbox.Announce(func() *wire.Leaving {
		return &wire.Leaving{Reason: "it was told to", Within: max(0, by-m.w.now)}
	})
	m.flush()
	m.after(within, m.stopNow)
	m.mayLeave()
}

// mayLeave ends a task manager that leaves if it waits for nothing.
func (m *taskManager) mayLeave() {
	if m.leaving && !m.stopping && len(m.workers) == 0 && len(m.kept) == 0 && (m.joined || m.outbox.Empty()) {
		m.stopNow()
	}
}

// stopNow kills the workers that are left, and then says that the task manager leaves.
func (m *taskManager) stopNow() {
	if m.stopping {
		return
	}
	m.stopping = true
	m.killAll(wire.LostFailure, "the task manager was stopped")
	m.awaitEnds()
}

// awaitEnds waits until all workers have ended, and then ends the process.
func (m *taskManager) awaitEnds() {
	if len(m.workers) > 0 || len(m.children()) > 0 {
		m.after(10*time.Millisecond, m.awaitEnds)
		return
	}
	m.outbox.RequestLeave("was stopped")
	m.flush()
	m.after(leaveTimeout, func() { m.w.after(0, m.kill) })
}

// deploy starts a worker, in the process that an earlier attempt of its job has kept if there is one.
func (m *taskManager) deploy(d *wire.Deployment) {
	switch {
	case m.stopping:
		m.refuse(d.WorkerRef, &wire.Failure{Kind: wire.LostFailure, Message: "the task manager was stopped"})
		return
	case m.workers[d.WorkerRef] != nil:
		return
	}
	var c *workerProcess
	if d.Mode == wire.RunMode {
		if c = m.takeKept(d.Job); c != nil {
			m.w.marks["a kept process is used again"]++
		}
	}
	t := newTMWorker(m, d)
	m.workers[d.WorkerRef] = t
	m.keepFiles(d)
	m.w.checkSlots(m)
	m.makeRoom(m.host.slots - m.used())
	m.outbox.Deployed(d.WorkerRef)
	t.begin(c)
}

// used returns how many slots the workers have.
func (m *taskManager) used() (n int) {
	for _, t := range m.workers {
		n += t.slots()
	}
	return n
}

// refuse reports Ended for a worker that does not exist.
func (m *taskManager) refuse(ref wire.WorkerRef, f *wire.Failure) {
	if f != nil {
		f.Worker, f.TaskManager, f.ExitCode = ref.Worker, m.machine.name, -1
	}
	m.tell(wire.WorkerEvent{WorkerRef: ref, Ended: &wire.Ended{Failure: f}})
}

// command passes a command on to its worker.
func (m *taskManager) command(c *wire.WorkerCommand) {
	t := m.workers[c.WorkerRef]
	switch {
	case t != nil:
		t.execute(c)
	case m.commandKept(c):
	case c.Kill != nil || c.Cancel != nil || c.Exit != nil:
		m.refuse(c.WorkerRef, nil)
	default:
		m.refuse(c.WorkerRef, &wire.Failure{Kind: wire.LostFailure, Message: "the task manager does not have the worker any more"})
	}
}
