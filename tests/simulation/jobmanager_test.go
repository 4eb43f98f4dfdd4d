package simulation

import (
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// managerHost is the machine of the job manager, with its disk. A process of the job manager runs there
// most of the time.
type managerHost struct {
	w        *world
	machine  *machine
	disk     disk
	jm       *jobManager // nil while none runs
	ports    int         // number of connections so far
	requests int         // number of the last request of a client for a savepoint
	starts   int
}

// jobManager is a process of the job manager: the core, and the shell around it.
type jobManager struct {
	*process
	host     *managerHost
	core     *core.Core
	began    time.Duration
	recorder recorder
	conns    map[int]*managerConn
	jobs     map[jobID]*managedJob
	saving   map[int]func(wire.Saved)
}

// managedJob is what the shell knows of a job.
type managedJob struct {
	saving   bool // its first record is being written, or was
	recorded bool // its first record is on disk, or could not be written
	unsaved  error
	waiting  []func() // called when recorded
	final    *wire.JobInfo
	kept     bool     // the record of its end is on disk
	exits    []func() // messages that wait for that
}

// managerConn is the connection of a task manager.
type managerConn struct {
	*side
	number int
	who    wire.Register
	proc   *process // of the task manager, to see whether its port of presence is open
}

// start starts a job manager.
func (h *managerHost) start() {
	w := h.w
	h.starts++
	m := &jobManager{
		process: w.newProcess(h.machine, fmt.Sprintf("jobmanager %d", h.starts)), host: h, began: w.now,
		conns: make(map[int]*managerConn), jobs: make(map[jobID]*managedJob), saving: make(map[int]func(wire.Saved)),
	}
	m.recorder = recorder{p: m.process, disk: &h.disk}
	h.jm = m
	m.died = append(m.died, func() { h.jm = nil })
	config := w.plan.core
	config.Cluster, config.Started = fmt.Sprint("cluster ", h.starts), time.Unix(1_800_000_000, 0).Add(w.now)
	config = h.disk.config(config)
	for _, info := range config.History {
		if !info.State.Ended() {
			m.jobs[info.ID] = &managedJob{saving: true, recorded: true}
		}
	}
	w.say("job manager %d starts with %d jobs", h.starts, len(m.jobs))
	for _, info := range config.History {
		if h.starts > 1 && !info.State.Ended() {
			w.marks["taken up while "+info.State.String()]++
		}
	}
	m.core = core.New(config)
	m.perform(m.core.Recover())
	w.checkRestart(m)
	m.after(core.TickEvery, m.tick)
}

func (m *jobManager) tick() {
	m.step(core.Tick{})
	m.after(core.TickEvery, m.tick)
}

// step passes an event to the core, and performs the effects.
func (m *jobManager) step(e core.Event) {
	m.perform(m.core.Step(m.w.now-m.began, e))
}

// perform performs effects, as jobmanager/effects.go does.
func (m *jobManager) perform(effects []core.Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case core.Send:
			m.send(e)
		case core.Disconnect:
			if c := m.conns[e.Conn]; c != nil {
				c.close("was disconnected")
				m.w.after(0, func() { m.do(func() { m.lostConn(c, "was disconnected") }) })
			}
		case core.Persist:
			if e.Job.State.Ended() {
				m.finish(e.Job)
			} else {
				m.persist(e)
			}
		case core.Changed:
			m.changed(e.Job)
		case core.Compile:
			m.after(m.w.between(time.Millisecond, 20*time.Millisecond), func() { m.compile(e) })
		case core.SaveAnswered:
			if answer := m.saving[e.Request]; answer != nil {
				delete(m.saving, e.Request)
				answer(e.Saved)
			}
		case core.Forget:
			m.w.violated("the job %s was forgotten", e.ID)
		}
	}
}

// send sends a message to a task manager. The command to exit waits until the end of the job is on disk.
func (m *jobManager) send(e core.Send) {
	c := m.conns[e.Conn]
	if c == nil {
		return
	}
	w := e.Message.Worker
	if w != nil && (w.Exit != nil || w.Kill != nil) {
		if j := m.jobs[w.Job]; j != nil && j.final != nil {
			if w.Exit != nil {
				if !j.kept {
					j.exits = append(j.exits, func() { c.side.send(e.Message) })
					return
				}
			} else if j.final.State == wire.JobFinished && j.final.Attempt == w.Attempt && !j.kept {
				return
			}
		}
	}
	m.w.checkSent(m, c, e.Message)
	c.side.send(e.Message)
}

// persist records a job that has not ended.
func (m *jobManager) persist(e core.Persist) {
	j := m.jobs[e.Job.ID]
	next := m.recording(e)
	if e.Job.State == wire.JobCommitting {
		m.recorder.put(recording{then: func(error) {
			if info, ok := m.core.Job(e.Job.ID); ok && info.State == wire.JobCommitting {
				m.recorder.put(next)
			}
		}})
		return
	}
	if !j.saving {
		j.saving = true
		next.then = func(err error) {
			j.recorded, j.unsaved = true, err
			for _, f := range j.waiting {
				f()
			}
			j.waiting = nil
		}
	}
	m.recorder.put(next)
}

// recording returns what the recorder writes for an effect, and then answers.
func (m *jobManager) recording(e core.Persist) recording {
	info := e.Job
	r := record{Info: info, Continuation: e.Continuation, Outcomes: info.Outcomes}
	r.Info.Plan, r.Info.Outcomes, r.Info.Progress = nil, nil, nil
	next := recording{change: &change{job: info.ID, record: &r, spec: e.Spec}}
	answer := func(err error) {
		m.step(core.Persisted{ID: info.ID, Attempt: info.Attempt, State: info.State, Err: err})
	}
	switch {
	case e.Barrier && e.Retry:
		next.kept = func() { answer(nil) }
	case e.Barrier:
		next.then = answer
	}
	return next
}

// finish records the end of a job.
func (m *jobManager) finish(info wire.JobInfo) {
	j := m.jobs[info.ID]
	if j == nil {
		m.recorder.put(recording{change: &change{job: info.ID, record: &record{Info: info}}})
		m.w.ended(info)
		return
	}
	if j.final != nil {
		return
	}
	j.final = &info
	r := &record{Info: info}
	r.Info.Outcomes = nil
	m.recorder.put(recording{then: func(error) {
		m.after(m.w.between(0, 20*time.Millisecond), func() {
			m.recorder.put(recording{change: &change{job: info.ID, record: r}, kept: func() {
				j.kept = true
				m.w.ended(info)
				for _, send := range j.exits {
					send()
				}
				j.exits = nil
			}})
		})
	}})
}

// changed is called when a job has changed.
func (m *jobManager) changed(info wire.JobInfo) {
	m.w.say("job %s attempt %d is %s: %s", info.ID, info.Attempt, info.State, info.Detail)
	m.w.checkChanged(info)
}

// compile compiles a graph that a worker has resolved.
func (m *jobManager) compile(e core.Compile) {
	if k := m.w.byID[e.ID]; k != nil {
		m.step(core.Compiled{ID: e.ID, Graph: e.Graph, Slots: k.spec.Parallelism})
	}
}

// accept accepts the connection of a task manager.
func (m *jobManager) accept(s *side, from *process) {
	m.host.ports++
	c := &managerConn{side: s, number: m.host.ports, proc: from}
	m.conns[c.number] = c
	s.hear = func(message any) { m.hear(c, message.(*wire.FromTaskManager)) }
	s.ended = func(why string) { m.lostConn(c, "lost its connection: "+why) }
}

// hear passes a message of a task manager to the core.
func (m *jobManager) hear(c *managerConn, said *wire.FromTaskManager) {
	switch {
	case said.Register != nil:
		c.who = *said.Register
		m.step(core.Registered{Conn: c.number, Register: *said.Register})
	case said.Heartbeat != nil:
		m.step(core.Heartbeat{Conn: c.number, Heartbeat: *said.Heartbeat})
	case said.Worker != nil:
		m.step(core.Reported{Conn: c.number, WorkerEvent: *said.Worker})
	case said.Leaving != nil:
		m.step(core.LeaveAnnounced{Conn: c.number, Leaving: *said.Leaving})
	case said.Leave != nil:
		m.step(core.Left{Conn: c.number, Reason: said.Leave.Reason})
	}
}

// lostConn is called when the connection of a task manager has ended. If its process has ended, its
// port refuses connections, so that the job manager need not wait for it.
func (m *jobManager) lostConn(c *managerConn, why string) {
	if m.conns[c.number] == nil {
		return
	}
	delete(m.conns, c.number)
	m.step(core.Disconnected{Conn: c.number, Reason: why})
	if c.who.ID == "" {
		return
	}
	until := m.w.now + core.DefaultDetection
	var ask func()
	ask = func() {
		n := &m.w.net
		if c.proc.dead && n.reaches(m.machine, c.proc.machine) && n.reaches(c.proc.machine, m.machine) {
			m.step(core.ProcessEnded{ID: c.who.ID, Incarnation: c.who.Incarnation})
			return
		}
		if m.w.now < until {
			m.after(50*time.Millisecond, ask)
		}
	}
	m.after(m.w.between(time.Millisecond, 5*time.Millisecond), ask)
}
