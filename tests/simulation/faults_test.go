package simulation

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// fault is something that goes wrong at a time or, if point is set, when a process comes to the n-th
// place of that name.
type fault struct {
	kind  faultKind
	at    time.Duration
	point string
	n     int
	lasts time.Duration
	pick  uint64 // chooses what it strikes
	done  bool
}

type faultKind int

const (
	workerKilled faultKind = iota
	workerStopped
	managerKilled // a task manager
	managerStopped
	managerLeaves
	machineOff
	jobManagerKilled
	jobManagerStopped
	connectionReset
	partitioned
	halfPartitioned
	slowed
	diskFull
	storeDown
	drained
	cordoned
	joined
	faultKinds
	userFails // no fault of the plan, but an incident
)

var faultNames = [...]string{"worker killed", "worker stopped", "task manager killed", "task manager stopped", "task manager leaves", "machine off",
	"job manager killed", "job manager stopped", "connection reset", "partition", "partition one way", "slow link", "disk full", "store down", "drain", "cordon", "join",
	"", "error of user code"}

func (k faultKind) String() string { return faultNames[k] }

// points are the places at which a process can be struck.
var points = []string{"prepare", "superstep", "copy", "fetch", "write", "store", "part", "finished", "commit", "renamed"}

// drawFaults draws the faults. A third of the schedules have one, so that the first cause is known.
func (w *world) drawFaults() {
	n := 1
	if !w.chance(3) {
		n = w.draw.IntN(14)
		if w.chance(12) {
			n += 30
		}
	}
	for range n {
		f := fault{kind: faultKind(w.draw.IntN(int(faultKinds))), pick: w.draw.Uint64(), at: w.between(500*time.Millisecond, w.plan.horizon)}
		if w.chance(3) {
			f.kind = workerKilled
		}
		switch w.draw.IntN(3) {
		case 0:
			f.lasts = w.between(0, time.Second)
		case 1:
			f.lasts = w.between(time.Second, 5*time.Second)
		default:
			f.lasts = w.between(3*time.Second, 12*time.Second)
		}
		if f.kind < drained && f.kind != diskFull && w.chance(2) {
			f.point = points[w.draw.IntN(len(points))]
			f.n = 1 + w.draw.IntN(map[bool]int{true: 40, false: 4}[f.point == "superstep" || f.point == "copy" || f.point == "store"])
		}
		w.plan.faults = append(w.plan.faults, f)
	}
	for i := range w.plan.faults {
		f := &w.plan.faults[i]
		if f.point == "" {
			w.after(f.at, func() { w.inflict(f, nil) })
		}
	}
}

// point is called when a process comes to a place at which it can be struck.
func (w *world) point(name string, c *workerProcess) {
	w.points[name]++
	for i := range w.plan.faults {
		f := &w.plan.faults[i]
		if !f.done && f.point == name && f.n == w.points[name] {
			w.after(0, func() { w.inflict(f, c) })
		}
	}
}

// incident is a fault that has happened, with the workers that it concerns.
type incident struct {
	at      time.Duration
	until   time.Duration
	kind    faultKind
	host    string
	worker  int
	attempt int
	job     *work
	refs    []wire.WorkerRef // workers that died of it
}

// strike records an incident of a job.
func (w *world) strike(job *work, i incident) {
	i.at, i.until, i.job = w.now, w.now, job
	w.incidents = append(w.incidents, i)
}

// workers returns the processes of workers that are alive.
func (w *world) workers() (all []*workerProcess) {
	for _, h := range w.hosts {
		if h.tm != nil {
			for _, c := range h.tm.launched {
				if !c.dead {
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// inflict lets a fault happen. c is the process that has come to the place of the fault, or nil.
func (w *world) inflict(f *fault, c *workerProcess) {
	if f.done || w.quiet {
		return
	}
	f.done = true
	h := w.hosts[f.pick%uint64(len(w.hosts))]
	if c != nil {
		h = c.m.host
	} else if all := w.workers(); len(all) > 0 {
		c = all[f.pick%uint64(len(all))]
		if f.pick>>32%4 > 0 {
			h = c.m.host // where something runs
		}
	}
	i := incident{at: w.now, until: w.now + f.lasts, kind: f.kind, host: h.machine.name}
	if c != nil && f.kind <= workerStopped {
		i.host = c.m.machine.name
		i.refs = c.refs()
	}
	if f.kind >= managerKilled && f.kind <= machineOff && h.tm != nil {
		for _, c := range h.tm.launched {
			if !c.dead {
				i.refs = append(i.refs, c.refs()...)
			}
		}
	}
	if f.kind == workerKilled && len(w.incidents) == 0 && len(w.clients) == 1 && c != nil {
		w.clients[0].job.survives = c.k.survives()
	}
	w.say("FAULT: %s of %s for %v, concerns %v (at %q)", f.kind, i.host, f.lasts, i.refs, f.point)
	w.incidents = append(w.incidents, i)
	w.carryOut(f, h, c)
}

// survives returns the supersteps after which the queues must continue if this worker is lost alone: the
// last ones of which other workers have copies, or files.
func (k *worker) survives() map[string]int {
	if k.group == nil || k.d == nil || k.closed || k.d.Spec.Restart.Strategy != wire.RestartExponentialDelay {
		return nil
	}
	if zero := k.group.members[0]; zero != nil && zero.exchange != nil {
		return maps.Clone(zero.exchange.settled)
	}
	return nil
}

// refs returns the worker that runs in the process.
func (c *workerProcess) refs() []wire.WorkerRef {
	if c.k.d == nil {
		return nil
	}
	return []wire.WorkerRef{c.k.d.WorkerRef}
}

// carryOut does what a fault does, and arranges for its end.
func (w *world) carryOut(f *fault, h *host, c *workerProcess) {
	jm := w.manager
	later := func(do func()) { w.after(f.lasts, do) }
	switch f.kind {
	case workerKilled:
		if c != nil && !c.dead {
			c.killed("killed")
		}
	case workerStopped:
		if c != nil {
			c.freeze()
			later(c.goOn)
		}
	case managerKilled:
		if h.tm != nil {
			h.tm.kill()
		}
		later(h.start)
	case managerStopped:
		if tm := h.tm; tm != nil {
			tm.stop()
			if f.pick%2 == 0 { // the whole machine sleeps
				for _, c := range tm.launched {
					c.stop()
					later(c.goOn)
				}
			}
			later(tm.goOn)
		}
	case managerLeaves:
		if h.tm != nil {
			h.tm.do(func() { h.tm.leave(f.lasts) })
		}
		w.after(f.lasts+w.between(0, 5*time.Second), h.start)
	case machineOff:
		h.machine.off = true
		if h.tm != nil {
			h.tm.kill()
		}
		w.watch()
		later(func() { h.machine.off = false; h.start() })
	case jobManagerKilled:
		if jm.jm != nil {
			jm.jm.kill()
		}
		later(func() {
			if jm.jm == nil {
				jm.start()
			}
		})
	case jobManagerStopped:
		if m := jm.jm; m != nil {
			m.stop()
			later(m.goOn)
		}
	default:
		w.disturb(f, h)
	}
}

// disturb carries out faults that end no process.
func (w *world) disturb(f *fault, h *host) {
	later := func(do func()) { w.after(f.lasts, do) }
	other := w.manager.machine
	if f.pick>>16%2 == 0 {
		other = w.hosts[f.pick>>8%uint64(len(w.hosts))].machine
	}
	switch f.kind {
	case connectionReset:
		w.flicker(h, w.now+f.lasts)
	case partitioned, halfPartitioned:
		a, b := h.machine, other
		if f.pick>>17%2 == 0 {
			a, b = b, a
		}
		w.cut(a, b)
		later(func() { w.heal(a, b) })
		if f.kind == partitioned {
			w.cut(b, a)
			later(func() { w.heal(b, a) })
		}
	case slowed:
		key := [2]int{h.machine.number, other.number}
		w.net.slow[key] = time.Duration(f.pick>>20%300) * time.Millisecond
		later(func() { delete(w.net.slow, key) })
	case diskFull:
		w.manager.disk.full = true
		later(func() { w.manager.disk.full = false })
	case storeDown:
		s := w.clients[f.pick>>8%uint64(len(w.clients))].job.store
		s.down = true
		later(func() { s.down = false })
	case drained, cordoned:
		w.cordon(h, f.kind == drained, f.lasts)
		w.after(f.lasts+4*time.Second, func() { w.uncordon(h) })
	case joined:
		w.addHost().start()
	}
}

// flicker breaks the connection of a task manager again and again for a while.
func (w *world) flicker(h *host, until time.Duration) {
	if h.tm != nil && h.tm.side != nil {
		h.tm.side.c.reset()
	}
	w.after(w.between(50*time.Millisecond, 600*time.Millisecond), func() {
		if w.now < until && !w.quiet {
			w.flicker(h, until)
		}
	})
}

// settle ends all faults.
func (w *world) settle() {
	w.quiet = true
	w.say("no further faults")
	clear(w.net.cuts)
	clear(w.net.slow)
	w.manager.disk.full = false
	for _, c := range w.clients {
		c.job.store.down = false
	}
	if w.manager.jm == nil {
		w.manager.start()
	} else {
		w.manager.jm.goOn()
	}
	for _, h := range w.hosts {
		h.machine.off = false
		if h.tm == nil {
			h.start()
			continue
		}
		h.tm.goOn()
		for _, c := range slices.Clone(h.tm.launched) {
			c.goOn()
		}
		w.uncordon(h)
	}
	w.after(30*time.Second, func() { // those that were leaving
		for _, h := range w.hosts {
			h.start()
			w.uncordon(h)
		}
	})
}

func (i incident) String() string {
	return fmt.Sprintf("%.3fs %s of %s %v", i.at.Seconds(), i.kind, i.host, i.refs)
}
