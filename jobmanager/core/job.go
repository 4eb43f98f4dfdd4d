package core

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/wire"
)

// job is the state of a job from its submission until it is forgotten.
type job struct {
	spec wire.JobSpec // specification; zero after the job has ended and its workers have ended
	info wire.JobInfo // Progress is set only when the job has ended; Outcomes is never set

	specRecorded bool // the specification has been passed to the shell for the record
	onRecord     int  // the last attempt whose record is on disk; workers of later attempts are not deployed yet
	adopted      bool // a former job manager deployed the current attempt
	awaited      int  // number of its workers whose task managers have not registered since the job manager restarted

	queued        bool          // the job waits for slots
	turn          time.Time     // place in the line of waiting jobs; earlier is further in front
	reservedUntil time.Duration // until this counted time, a slot is reserved for the job but not used; 0 if the job may use its slots
	since         time.Duration // counted time at which the job's current wait began

	resolver  *worker
	compiling bool      // the graph that the resolver built is being compiled
	workers   []*worker // workers of the current attempt, by number
	takers    []*worker // workers behind them that get rows for the next attempt (precopy.go)
	ready     int       // number of workers that are ready
	processes int       // number of worker processes that have not ended, including the resolver

	preparing  bool   // worker 0 has got the command to prepare
	recorded   bool   // the job's record as committing is on disk
	committing bool   // worker 0 has got the command to commit
	cancelLate string // reason of a cancellation that waits for the end of the commit; "" if there is none
	finished   int    // number of workers that have finished
	resume     resume // state of a commit that another worker must finish
	outcomes   [][]byte

	restarts    restarts      // decides whether and when the job is restarted
	refused     string        // why it was not restarted after the loss of its last attempt; "" if it was or need not be
	deployed    time.Time     // wall-clock time at which the current attempt was deployed
	started     time.Duration // counted time at which the current attempt began to run; 0 before
	ranBefore   time.Duration // how long the attempt had run when a former job manager stopped
	restartAt   time.Duration // counted time at which the next attempt may begin
	fencedUntil time.Duration // counted time until which workers on lost task managers may disturb the next attempt; 0 if there are none
	overlaps    bool          // a worker has said that an attempt may begin while workers of the one before still run
	awaitsHeld  bool          // a former job manager started the attempt, and not all workers have said again what they have kept
	kept        []keptProcess // processes of ended workers that wait for the next attempt
	filesOn     string        // ID of the task manager that has states of the job in files; "" if there is none
	computed    bool          // all workers have finished, so the job is not restarted any more
	unwanted    bool          // a cancellation was requested while the core looked for a cause, so the job is not restarted any more

	earlier   wire.Checkpointed // what the attempts before the current one have reported of their checkpoints
	newest    time.Duration     // when the core learned of the newest checkpoint, or the job first ran; 0 before
	saving    []save            // requests for checkpoints that worker 0 has not answered
	precopy   *precopy          // what is chosen for the next attempt; nil if nothing is
	fruitless bool              // the last state that was asked for in this attempt made no move possible, so no rows are copied for the next
	move      *move             // nil unless the attempt has to end because of a drain or of another number of slots

	target     int           // most slots that the next attempt gets, as the core decided; 0 if the client's limit holds
	moving     bool          // the attempt was ended by a move, so that its slots are reserved
	planned    int           // parallelism of the plan on record
	scaleFrom  time.Duration // counted time from which the job may grow
	saveFailed bool          // the job was to be scaled, and its state could not be saved

	deciding bool          // the job failed because workers lost contact with each other; the cause is not known yet
	decideBy time.Duration // counted time until which the core waits for the cause
	detected time.Time     // wall-clock time at which a worker reported that failure; zero if the cause was known at once
	note     string        // which results may be visible after an interrupted commit; "" if there was none
}

// start returns the command that starts the job's workers.
func (j *job) start() *wire.Start {
	addresses := make([]string, len(j.info.Workers))
	for i, p := range j.info.Workers {
		addresses[i] = p.Address
	}
	return &wire.Start{Addresses: addresses, Origin: j.info.Origin, Held: j.held()}
}

// moveJob moves a job to the state that follows its state on event e. It returns false if e
// does not change the job's state. detail explains the new state to users.
func (c *Core) moveJob(j *job, e jobEvent, detail string) bool {
	next, ok := jobTable.next(j.info.State, e)
	if !ok {
		return false
	}
	if c.inLine(j) {
		j.queued, c.rethink = false, true
	}
	j.info.State, j.info.Detail = next, detail
	if next != wire.JobRunning {
		c.dropSaves(j)
	}
	j.since = c.clock.Counted()
	return true
}

// snapshot returns an immutable copy of the job for clients.
func (j *job) snapshot() wire.JobInfo {
	info := j.info
	info.Workers = slices.Clone(info.Workers)
	return info
}

// submit adds the job of e.
func (c *Core) submit(e Submitted) {
	if c.jobs[e.ID] != nil {
		return
	}
	if !e.At.IsZero() {
		c.epoch = e.At.Add(-c.now)
	}
	j := &job{spec: e.Spec, queued: true, since: c.clock.Counted(), info: wire.JobInfo{
		ID:          e.ID,
		Name:        e.Spec.Name,
		State:       wire.JobWaiting,
		Parallelism: e.Spec.Parallelism,
		Slots:       e.Slots,
		Shards:      e.Spec.Shards,
		Seed:        e.Spec.Seed,
		Artifact:    e.Spec.Artifact,
		Build:       e.Spec.Build,
		Allowed:     e.Spec.Allowed(),
		Priority:    e.Spec.Priority,
		Submitted:   c.wall(),
		Key:         e.Key,
	}}
	j.planned = j.info.Parallelism
	if e.Slots <= 0 {
		j.info.State, j.info.Slots = wire.JobResolving, 0
	}
	if s := e.Spec.Run.Checkpoints; s != nil && s.Dir != "" {
		j.info.Checkpoints = &wire.JobCheckpoints{Dir: s.Dir}
	}
	j.restarts.settings = e.Spec.Restart.WithDefaults()
	c.jobs[e.ID] = j
	c.enter(j)
	c.live = append(c.live, j)
	c.rethink = true
	c.record(j, false)
}

// place gives a job the slots in shares and deploys the job's workers there. Share.Offer is an
// index into c.order.
func (c *Core) place(j *job, shares []Share) {
	taskManagers := make([]*taskManager, len(shares))
	ranges := make([]wire.SlotRange, len(shares))
	placed := make([]wire.Placed, len(shares))
	for i, s := range shares {
		taskManagers[i], ranges[i] = c.order[s.Offer], s.Slots
		placed[i] = wire.Placed{TaskManager: taskManagers[i].Name, Slots: s.Slots}
	}
	j.info.Attempt++
	j.deployed = c.wall()
	if j.info.State == wire.JobResolving {
		j.queued, j.since = false, c.clock.Counted()
		j.info.Detail = "learning what the graph rests on, on task manager " + taskManagers[0].Name
		j.resolver = c.deploy(j, taskManagers[0], wire.ResolveMode, 0, ranges)
		c.recordDeployment(j)
		return
	}
	if j.resume.due {
		c.placeResumed(j, taskManagers[0], placed, ranges)
		return
	}
	if n := ranges[len(ranges)-1].Hi; !j.slotsFixed() {
		j.info.Parallelism, j.info.Slots = n, n
	}
	for _, k := range j.givers(taskManagers) {
		none := wire.SlotRange{Lo: j.info.Slots, Hi: j.info.Slots}
		taskManagers, ranges = append(taskManagers, k.taskManager), append(ranges, none)
		placed = append(placed, wire.Placed{TaskManager: k.taskManager.Name, Slots: none})
	}
	j.info.Workers, j.target, j.moving, j.precopy = placed, 0, false, nil
	c.moveJob(j, jobPlaced, j.starting())
	j.workers = make([]*worker, len(taskManagers))
	for i, n := range taskManagers {
		j.workers[i] = c.deploy(j, n, wire.RunMode, i, ranges)
	}
	c.dismissKept(j, taskManagers)
	c.recordDeployment(j)
}

// starting returns the detail of a job that is being deployed.
func (j *job) starting() string {
	return fmt.Sprintf("starting %s on %s", humanize.Count(j.info.Slots, "slot"), humanize.Count(j.running(), "task manager"))
}

// resolved emits Compile for the graph that worker w resolved, and sends w the command to exit.
func (c *Core) resolved(w *worker, graph []byte) {
	c.stop(w, orderedExit, "")
	if w.job.info.State == wire.JobResolving && w == w.job.resolver {
		w.job.compiling = true
		c.emit(Compile{ID: w.job.info.ID, Graph: graph})
	}
}

// compiled processes the result of compiling a job's graph. Then the job waits for slots, at
// the position in the queue that its submission gave it.
func (c *Core) compiled(e Compiled) {
	j := c.jobs[e.ID]
	switch {
	case j == nil || j.info.State != wire.JobResolving || !j.compiling:
	case e.Err != nil:
		c.fail(j, &wire.Failure{Kind: wire.MisuseFailure, Message: "the job's graph does not compile: " + e.Err.Error(), Worker: -1, ExitCode: -1})
	case e.Slots < 1:
		c.fail(j, &wire.Failure{Kind: wire.ClusterFailure, Message: fmt.Sprintf("the job's plan needs %d slots", e.Slots), Worker: -1, ExitCode: -1})
	default:
		c.moveJob(j, jobResolved, "")
		j.spec.Graph, j.info.Slots, j.specRecorded = e.Graph, e.Slots, false
		j.queued, c.rethink = true, true
		c.record(j, false)
	}
}

// ready records that a worker is ready. When all workers are ready, it sends worker 0 the
// command to prepare the sinks.
func (c *Core) ready(w *worker, r *wire.Ready) {
	j := w.job
	if w.takes {
		c.takerReady(w, r)
		return
	}
	w.fingerprint, j.overlaps = r.Fingerprint, j.overlaps || r.Overlaps
	j.info.Workers[w.ref.Worker].Address = r.Address
	if w.mode == wire.CommitMode {
		c.resumeCommit(w)
		return
	}
	if j.info.State != wire.JobDeploying {
		return
	}
	if j.info.Fingerprint == "" {
		j.info.Fingerprint = r.Fingerprint
	}
	if r.Fingerprint != j.info.Fingerprint {
		c.workerFailed(w, &wire.Failure{
			Kind: wire.MisuseFailure,
			Message: fmt.Sprintf("the workers' programs build different graphs from the same arguments: this one has the fingerprint %s, others %s",
				r.Fingerprint, j.info.Fingerprint),
			ExitCode: -1,
		}, notEnded)
		return
	}
	if !c.hold(w, r.Held) {
		return
	}
	if j.ready++; j.ready < len(j.workers) {
		return
	}
	if j.preparing = true; j.workers[0].state == WorkerReady {
		c.command(j.workers[0], wire.WorkerCommand{Prepare: &wire.Prepare{Held: j.held()}})
	}
	c.startReady(j)
}

// startReady starts a job's workers if all are ready and worker 0 has prepared the sinks. If a
// former job manager deployed them, the sinks may have been prepared before all workers report
// again that they are ready.
func (c *Core) startReady(j *job) {
	if j.ready == len(j.workers) && j.workers[0].state == WorkerPrepared {
		c.startAll(j)
	}
}

// startAll sends all workers the command to start.
func (c *Core) startAll(j *job) {
	j.info.Saves = j.info.Saves || j.saves()
	detail := ""
	if o := j.info.Origin; o != nil && (!o.Begins() || j.info.Restarts > 0) {
		detail = begins(o)
	}
	c.moveJob(j, jobStarted, detail)
	j.info.Started, j.started = c.wall(), max(1, c.clock.Counted()) // 0 says that it has not begun
	j.newest = cmp.Or(j.newest, c.now)
	j.scaleFrom, j.saveFailed = j.started+c.config.ScaleInterval, false
	c.unsettle()
	c.phaseEnds(j, wire.RecoveryConnected, 1)
	start := j.start()
	for _, w := range j.workers {
		w.state, _ = workerTable.next(w.state, toldStart)
		c.command(w, wire.WorkerCommand{Start: start})
	}
	c.record(j, false)
}

// finished records that the subtasks of a worker have succeeded. When all workers with slots have
// finished, the job is recorded as committing, before any of its results is visible.
func (c *Core) finished(w *worker, outcome []byte) {
	j := w.job
	if j.info.State != wire.JobRunning {
		return
	}
	if w.gives() {
		c.leaveGivers(j)
		return
	}
	if j.outcomes == nil {
		j.outcomes = make([][]byte, j.running())
	}
	j.outcomes[w.ref.Worker] = outcome
	if j.finished++; j.finished == j.running() {
		j.computed = true
		c.endPrecopy(j) // its slots may be needed to finish the commit
		c.moveJob(j, jobCommits, "making the results visible")
		c.record(j, true)
	}
}

// committed ends a job as finished. The job's workers hold their slots until their processes
// have ended.
func (c *Core) committed(j *job) {
	if !c.moveJob(j, jobCommitted, "") {
		j.note = "; its results had become visible"
		return
	}
	c.close(j)
	c.stopAll(j, orderedExit, "")
	c.settle(j)
}

// all returns the workers of the job, with its takers. If another attempt finishes the commit, it includes
// the workers of the attempt that ran.
func (j *job) all() iter.Seq[*worker] {
	return func(yield func(*worker) bool) {
		for _, list := range [...][]*worker{j.resume.ran, j.workers, j.takers} {
			for _, w := range list {
				if !yield(w) {
					return
				}
			}
		}
	}
}

// stopAll sends all workers of a job the command how, by which they must end. Unless they keep their
// processes for another attempt, it also ends those that wait already.
func (c *Core) stopAll(j *job, how endOrder, reason string) {
	if how != orderedKeep {
		c.dismissKept(j, nil)
	}
	c.stop(j.resolver, how, reason)
	for w := range j.all() {
		c.stop(w, how, reason)
	}
}

// settle ends a failing or cancelling job once its last worker has ended. It also releases the
// data that only the workers of an ended job needed.
func (c *Core) settle(j *job) {
	if j.processes > 0 {
		return
	}
	if j.deciding {
		c.decide(j, lost)
	}
	c.survivorsStopped(j)
	detail := j.info.Detail
	if c.moveJob(j, jobEmptied, detail) {
		j.info.Detail += j.note
		if f := j.info.Failure; f != nil && j.note != "" {
			noted := *f
			noted.Message += j.note
			j.info.Failure = &noted
		}
		c.close(j)
	}
	if j.info.State.Ended() {
		j.spec, j.resolver, j.workers, j.takers, j.precopy, j.outcomes, j.resume = wire.JobSpec{}, nil, nil, nil, nil, nil, resume{}
		c.live = slices.DeleteFunc(c.live, func(o *job) bool { return o == j })
		c.forget()
	}
}

// close records a job that has ended.
func (c *Core) close(j *job) {
	j.info.Ended = c.wall()
	j.info.Progress = j.progress()
	for w := range j.all() {
		w.progress = nil
	}
	c.record(j, false)
	c.ended = append(c.ended, j)
}

// forget removes the oldest ended jobs while there are more than Keep. It stops at a job whose
// workers have not ended yet.
func (c *Core) forget() {
	for len(c.ended) > c.config.Keep && c.ended[0].processes == 0 {
		id := c.ended[0].info.ID
		delete(c.jobs, id)
		c.ended = slices.Delete(c.ended, 0, 1)
		c.emit(Forget{ID: id})
	}
}

// failOverdue fails a job that has been in its current state for too long.
func (c *Core) failOverdue(j *job) {
	waited := c.clock.Counted() - j.since
	switch j.info.State {
	case wire.JobResolving, wire.JobWaiting:
		if j.reservedUntil > 0 && c.clock.Counted() >= j.reservedUntil {
			j.reservedUntil, c.rethink = 0, true
		}
		if limit := j.spec.WaitTimeout; j.queued && limit > 0 && waited >= limit {
			c.giveUpWaiting(j, limit)
		} else if !j.queued && waited >= c.config.ResolveTimeout {
			c.fail(j, &wire.Failure{
				Kind:        wire.UserFailure,
				Message:     fmt.Sprintf("the worker did not learn within %s what the graph rests on", c.config.ResolveTimeout),
				TaskManager: j.resolver.taskManager.Name,
				ExitCode:    -1,
			})
		}
	case wire.JobDeploying:
		if j.awaited == 0 && waited >= c.config.DeployTimeout {
			c.fail(j, &wire.Failure{Kind: wire.ClusterFailure, Message: j.notReady(c.config.DeployTimeout), Worker: -1, ExitCode: -1})
		}
	case wire.JobCommitting:
		if j.cancelLate != "" && waited >= c.config.KillAfter {
			c.cancel(j, j.cancelLate)
		} else if j.resume.due && !j.committing {
			c.failOverdueResumption(j, waited)
		}
	case wire.JobFailing:
		if j.deciding && c.clock.Counted() >= j.decideBy {
			c.decide(j, lost)
		}
	case wire.JobRestarting:
		c.restartDue(j)
	case wire.JobRunning:
		c.precopyDue(j)
		c.leaveOverdue(j)
	}
	if j.processes > 0 {
		c.killLate(j.resolver)
		for w := range j.all() {
			c.killLate(w)
		}
	}
}

// giveUpWaiting fails a job that did not get its slots in time. The failure says how many slots
// were missing.
func (c *Core) giveUpWaiting(j *job, limit time.Duration) {
	offers := c.offers()
	line := queue{}
	for _, o := range c.line() {
		if o == j {
			break
		}
		if o.queued {
			line.join(o.spec.Platform)
		}
	}
	request := c.request(j)
	_, short := line.place(offers, request, line.before(request.Platform))
	message := fmt.Sprintf("gave up after %s of waiting for slots", limit)
	if short != nil {
		message = fmt.Sprintf("gave up after %s of waiting for %s", limit, short)
		if n := short.Missing(); n > 0 {
			message += fmt.Sprintf("; %s missing", humanize.CountOf(n, "slot was", "slots were"))
		}
	}
	c.fail(j, &wire.Failure{Kind: wire.ClusterFailure, Message: message, Worker: -1, ExitCode: -1})
}

// notReady returns text that names the workers that did not become ready in time.
func (j *job) notReady(limit time.Duration) string {
	if j.onRecord != j.info.Attempt {
		return fmt.Sprintf("the job manager could not put the deployment on record within %s; its log says why", limit)
	}
	var names []string
	for _, w := range j.workers {
		if w.state == WorkerDeploying {
			names = append(names, fmt.Sprintf("%d on task manager %s", w.ref.Worker, w.taskManager.Name))
		}
	}
	if len(names) == 0 {
		return fmt.Sprintf("worker 0 on task manager %s had not begun the outputs %s after the deployment", j.workers[0].taskManager.Name, limit)
	}
	return fmt.Sprintf("not all workers were ready %s after the deployment: %s of %d missing: %s",
		limit, humanize.Count(len(j.workers)-j.ready, "worker"), len(j.workers), humanize.List(names, ", ", 5))
}
