package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
)

// goneKept is the number of task managers that were lost or have left, and are still shown to
// users.
const goneKept = 50

// taskManager is the state of a task manager from its registration until it is lost or leaves.
type taskManager struct {
	wire.Register // registration without Running; Kept is what it has listed last, or reported since
	state         TaskManagerState
	conn          int           // number of the task manager's connection; 0 if it is away, lost or left
	heard         time.Duration // counted time of the last message from it, or at which its connection broke
	heardAt       time.Duration // time of the last message from it, to be shown to users
	ended         bool          // it is away, and its process has ended
	patience      time.Duration // if not 0, how long the core waits for its first registration after a restart of the job manager
	waitRestarted bool          // a standstill has restarted the wait for a message since the last message
	since         time.Time
	reason        string     // why it is away, lost or left; completes the sentence "task manager X ..."
	departure     *departure // announcement that it leaves; nil if there is none
	used          int        // number of slots in use
	workers       map[wire.WorkerRef]*worker
	beats         uint64
}

// offer returns the offer of the slots of task manager n.
func (c *Core) offer(n *taskManager) Offer {
	o := Offer{ID: n.ID, Name: n.Name, Platform: n.Platform, Executable: n.Executable, Ailing: n.Ailing, Slots: n.Slots}
	_, o.Cordoned = c.cordons[n.Name]
	o.Cordoned = o.Cordoned || n.departure != nil
	_, o.Avoided = c.avoid.at(n.ID, c.clock.Counted())
	if n.state == TaskManagerAlive && n.Ailing == "" && !o.Cordoned {
		o.Free = max(0, n.Slots-n.used) // it may have workers that a former job manager counted as ended
	}
	return o
}

// workersInOrder returns the task manager's workers, sorted.
func (n *taskManager) workersInOrder() []*worker {
	all := make([]*worker, 0, len(n.workers))
	for _, w := range n.workers {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *worker) int { return compareRefs(a.ref, b.ref) })
	return all
}

func compareRefs(a, b wire.WorkerRef) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Worker, b.Worker))
}

func compareTaskManagers(a, b *taskManager) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
}

// moveTaskManager moves a task manager to the state that follows its state on event e. It
// returns false if there is no such transition.
func (c *Core) moveTaskManager(n *taskManager, e taskManagerEvent) bool {
	next, ok := taskManagerTable.next(n.state, e)
	if ok && next != n.state {
		n.state = next
		c.rethink = true
	}
	return ok
}

// send sends m to a task manager. If the task manager is away, m is dropped, and the core sends
// the necessary commands again when the task manager is back.
func (c *Core) send(n *taskManager, m wire.ToTaskManager) {
	if n.conn != 0 {
		c.emit(Send{Conn: n.conn, Message: m})
	}
}

// refuse sends Refused with a reason on a connection and closes the connection.
func (c *Core) refuse(conn int, final bool, reason string) {
	c.emit(Send{Conn: conn, Message: wire.ToTaskManager{Refused: &wire.Refused{Reason: reason, Final: final}}})
	c.emit(Disconnect{Conn: conn})
}

// register processes a registration: it admits a task manager that is new, or takes back a task
// manager that is known.
func (c *Core) register(e Registered) {
	if n := c.conns[e.Conn]; n != nil {
		c.refuse(e.Conn, false, "a task manager registers once on a connection")
		c.cut(n, "registered twice on one connection")
		return
	}
	if e.Name == "" {
		e.Name = e.ID
	}
	if why := c.unfit(&e.Register); why != "" {
		c.refuse(e.Conn, true, why)
		return
	}
	n := c.taskManagers[e.ID]
	if n != nil && n.Incarnation != e.Incarnation {
		if n.state == TaskManagerAlive {
			c.refuse(e.Conn, false, fmt.Sprintf(
				"two task managers have the identity %s: %s (process %d on %s) is registered and sent a message %.1fs ago, and %s (process %d on %s) asks to register; give one of them a work directory of its own",
				e.ID, n.Name, n.PID, n.Host, (c.now-n.heardAt).Seconds(), e.Name, e.PID, e.Host))
			return
		}
		c.lose(n, "was restarted")
		n = nil
	}
	if n != nil && (n.Slots != e.Slots || n.Platform != e.Platform || n.Executable != e.Executable) {
		c.refuse(e.Conn, true, fmt.Sprintf("task manager %s had %s of %s, executable %s, and cannot have %s of %s, executable %s, without a restart",
			n.Name, humanize.Count(n.Slots, "slot"), n.Platform, programs.Short(n.Executable), humanize.Count(e.Slots, "slot"), e.Platform, programs.Short(e.Executable)))
		return
	}
	if n == nil {
		n = c.admit(e)
	} else {
		c.takeBack(n, e.Conn)
	}
	c.setAiling(n, e.Ailing)
	c.send(n, wire.ToTaskManager{Registered: &wire.Registered{Cluster: c.config.Cluster, Heartbeat: c.config.Heartbeat, Lease: c.config.Lease}})
	if e.Leaving != nil { // first, so that workers that wait for their deployment are not deployed
		c.announce(n, *e.Leaving)
	}
	c.compare(n, &e.Register)
	c.listedKept(n, e.Kept, true)
}

// unfit returns why the task manager with registration r can never be admitted, or "" if it can
// be admitted.
func (c *Core) unfit(r *wire.Register) string {
	switch {
	case r.Version != wire.Version:
		upgrade := "task manager"
		if r.Version > wire.Version {
			upgrade = "job manager"
		}
		return fmt.Sprintf("the task manager (%s) speaks version %d of the protocol and the job manager (%s) version %d: upgrade the %s",
			cmp.Or(r.Build, "unknown build"), r.Version, cmp.Or(c.config.Build, "unknown build"), wire.Version, upgrade)
	case r.ID == "" || r.Incarnation == "":
		return "a task manager without an identity or an incarnation cannot register"
	case len(r.ID) > maxText || len(r.Incarnation) > maxText || len(r.Name) > maxText || len(r.Host) > maxText || len(r.Build) > maxText ||
		len(r.Presence) > maxText || len(r.PresenceKey) > maxText ||
		len(r.Platform.OS) > maxText || len(r.Platform.Arch) > maxText:
		return fmt.Sprintf("a task manager's identity, name, host, build, platform and presence have at most %d bytes each", maxText)
	case programs.CheckHash(r.Executable) != nil:
		return fmt.Sprintf("a task manager says which executable it is by a SHA-256 in lower-case hex, not %.80q", r.Executable)
	case r.Slots < 1 || r.Slots > maxSlots:
		return fmt.Sprintf("a task manager has from 1 to %d slots, not %d", maxSlots, r.Slots)
	case r.Memory < 0:
		return fmt.Sprintf("a task manager cannot have %d bytes of memory", r.Memory)
	}
	return ""
}

// setAiling records why a task manager takes no new work; "" means that it takes new work.
func (c *Core) setAiling(n *taskManager, why string) {
	why = why[:min(len(why), maxAiling)]
	if n.Ailing != why {
		n.Ailing, c.rethink = why, true
	}
}

// admit adds a task manager that is not known.
func (c *Core) admit(e Registered) *taskManager {
	n := &taskManager{Register: e.Register, conn: e.Conn, since: c.wall(), workers: make(map[wire.WorkerRef]*worker)}
	n.Running, n.Kept, n.Leaving = nil, nil, nil
	n.heard, n.heardAt = c.clock.Counted(), c.now
	c.conns[e.Conn], c.taskManagers[e.ID] = n, n
	at, _ := slices.BinarySearchFunc(c.order, n, compareTaskManagers)
	c.order = slices.Insert(c.order, at, n)
	c.gone = slices.DeleteFunc(c.gone, func(old *taskManager) bool { return old.ID == n.ID })
	c.rethink = true
	return n
}

// takeBack makes conn the connection of task manager n, which is known.
func (c *Core) takeBack(n *taskManager, conn int) {
	if n.conn != 0 {
		delete(c.conns, n.conn)
		c.emit(Disconnect{Conn: n.conn})
	}
	c.moveTaskManager(n, taskManagerBack)
	n.conn, n.reason, n.patience, n.ended = conn, "", 0, false
	n.heard, n.heardAt, n.waitRestarted = c.clock.Counted(), c.now, false
	c.conns[conn] = n
}

// compare compares the workers that a task manager lists when it registers with the workers
// that the core knows. Listed workers that are unknown are killed, as they belong to jobs that
// have ended in the meantime. Known workers that are not listed are treated as ended. To
// workers that are known and listed, the core sends again all commands that may have been lost.
// Workers whose deployment was not sent yet need not be listed. A worker that has kept its process may
// be listed if its end is yet to be reported.
func (c *Core) compare(n *taskManager, r *wire.Register) {
	has := make(map[wire.WorkerRef]bool, len(r.Running))
	for _, ref := range r.Running {
		if n.workers[ref] == nil && !has[ref] && !slices.Contains(r.Kept, ref) {
			c.kill(n, ref)
		}
		has[ref] = true
	}
	mine := n.workersInOrder()
	for _, w := range mine {
		if has[w.ref] {
			c.adopt(w)
			c.repeatCommands(w)
		}
	}
	for _, w := range mine {
		switch {
		case w.pending != nil:
			c.release(w)
		case !has[w.ref] && !w.state.Gone():
			f := lostFailure(cameBackWithout(n.Name, r.Broke))
			if w.awaited && w.job.deciding {
				f.Kind = wire.PeerFailure // a former job manager may have heard that it failed because of the cause
			}
			c.workerGone(w, processEnded, f, lost)
		}
	}
}

// cameBackWithout returns a message that says that the task manager name registered again
// without a worker. The message includes broke, the reason why the last connection broke,
// because the command to start the worker may have been lost with that connection.
func cameBackWithout(name, broke string) string {
	message := fmt.Sprintf("task manager %s came back without the worker", name)
	if broke != "" {
		message += "; its connection to the job manager had ended: " + broke[:min(len(broke), maxAiling)]
	}
	return message
}

// kill sends a task manager the command to kill a worker that should not exist. A worker that has kept its
// process may be listed, and its end reported, once more after its connection broke.
func (c *Core) kill(n *taskManager, ref wire.WorkerRef) {
	if j := c.jobs[ref.Job]; j != nil && j.keeps(n, ref) {
		return
	}
	c.send(n, wire.ToTaskManager{Worker: &wire.WorkerCommand{WorkerRef: ref, Kill: &wire.Kill{}}})
}

// heartbeat processes and acknowledges a heartbeat. Unless the kept processes of this task manager have
// changed, it takes time proportional to the number of its workers and of jobs with states there, whatever
// the numbers of jobs and of other task managers.
func (c *Core) heartbeat(e Heartbeat) {
	n := c.hear(e.Conn)
	if n == nil {
		return
	}
	c.send(n, wire.ToTaskManager{Ack: &wire.Ack{Number: e.Number, Over: c.over(e.States)}})
	c.setAiling(n, e.Ailing)
	c.listedKept(n, e.Kept, false)
	n.beats++
	known := 0
	for _, ref := range e.Running {
		if w := n.workers[ref]; w == nil {
			c.kill(n, ref)
		} else if w.beat != n.beats {
			w.beat = n.beats
			known++
		}
	}
	if known == len(n.workers) {
		return
	}
	for _, w := range n.workersInOrder() {
		if !w.state.Gone() {
			c.missed(w)
		}
	}
}

// over returns those of the jobs that get no further attempt, so that nobody needs their states any more.
func (c *Core) over(jobs []wire.JobID) (all []wire.JobID) {
	for _, id := range jobs {
		if j := c.jobs[id]; j == nil || !j.goesOn() {
			all = append(all, id)
		}
	}
	return all
}

// missed checks a worker that a heartbeat did not list. A task manager reports the end of a
// worker explicitly, but that report may have been lost with a connection. A worker that is
// being deployed need not be listed yet; DeployTimeout applies to it.
func (c *Core) missed(w *worker) {
	switch {
	case w.beat == w.taskManager.beats || w.state == WorkerDeploying && w.ordered == notOrdered:
		w.missing = false
	case !w.missing:
		w.missing, w.missed = true, c.clock.Counted()
	case c.clock.Counted()-w.missed >= c.config.Detection:
		c.workerGone(w, processEnded, lostFailure(fmt.Sprintf("task manager %s does not have the worker any more", w.taskManager.Name)), lost)
	}
}

// hear records that a message was received on connection conn, and returns the task manager
// that is registered on the connection, or nil if there is none.
func (c *Core) hear(conn int) *taskManager {
	n := c.conns[conn]
	if n != nil && c.moveTaskManager(n, taskManagerHeard) {
		n.heard, n.heardAt, n.waitRestarted = c.clock.Counted(), c.now, false
	}
	return n
}

// left processes a Leave.
func (c *Core) left(e Left) {
	if n := c.conns[e.Conn]; n != nil {
		c.leave(n, taskManagerLeaves, "left: "+cmp.Or(e.Reason, "no reason given"))
	}
}

// disconnected processes the loss of a connection.
func (c *Core) disconnected(e Disconnected) {
	if n := c.conns[e.Conn]; n != nil {
		c.cut(n, cmp.Or(e.Reason, "closed its connection"))
	}
}

// processEnded processes a ProcessEnded.
func (c *Core) processEnded(e ProcessEnded) {
	if n := c.taskManagers[e.ID]; n != nil && n.Incarnation == e.Incarnation && n.state == TaskManagerAway {
		n.ended = true
	}
}

// cut records that the connection of a task manager broke, and begins the wait for the
// reconnection.
func (c *Core) cut(n *taskManager, reason string) {
	c.moveTaskManager(n, taskManagerCut)
	delete(c.conns, n.conn)
	n.conn, n.reason, n.heard = 0, reason, c.clock.Counted()
}

// watch checks whether a task manager has been silent or away for too long.
func (c *Core) watch(n *taskManager) {
	waited, limit := c.clock.Counted()-n.heard, max(c.config.Reconnect, n.patience)
	if c.still.before(n.heard, c.config.Detection) {
		limit = max(limit, c.config.Detection)
	}
	switch {
	case n.state == TaskManagerAway && n.ended && waited >= c.config.Ended:
		c.lose(n, n.reason+", and its process has ended")
	case n.state == TaskManagerAway && waited >= limit:
		c.lose(n, fmt.Sprintf("%s and was not back within %.1fs", n.reason, waited.Seconds()))
	case n.state == TaskManagerAway:
	case waited >= c.config.Detection:
		c.lose(n, fmt.Sprintf("was silent for %.1fs", waited.Seconds()))
	case waited >= c.config.Detection/2:
		c.moveTaskManager(n, taskManagerSilence)
	}
}

// lose makes a task manager count as lost, for the given reason.
func (c *Core) lose(n *taskManager, reason string) { c.leave(n, taskManagerExpired, reason) }

// leave removes a task manager that is lost or has left. Its workers count as lost.
func (c *Core) leave(n *taskManager, e taskManagerEvent, reason string) {
	c.moveTaskManager(n, e)
	n.reason = reason
	if n.conn != 0 {
		c.emit(Disconnect{Conn: n.conn})
		delete(c.conns, n.conn)
		n.conn = 0
	}
	if c.taskManagers[n.ID] == n {
		delete(c.taskManagers, n.ID)
	}
	c.order = slices.DeleteFunc(c.order, func(o *taskManager) bool { return o == n })
	for _, w := range n.workersInOrder() {
		if !w.state.Gone() {
			c.workerGone(w, managerLost, lostFailure("task manager "+n.Name+" "+reason), lost)
		}
	}
	for _, j := range c.live {
		j.forgetKept(n)
	}
	c.gone = append(c.gone, n)
	if len(c.gone) > goneKept {
		c.gone = slices.Delete(c.gone, 0, 1)
	}
	c.rethink = true
}
