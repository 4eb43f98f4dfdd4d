package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/wire"
)

// If a worker of a job is lost before all workers have finished, the attempt is lost. The job
// then begins again with another attempt, unless its restart strategy forbids it. The attempt
// continues from the job's newest checkpoint, or from superstep 1 if there is none. An error that a worker reports fails the job, as another attempt would fail too. A job that
// commits has a rule of its own (resume.go). A job whose graph is being resolved stays in its state, and
// another worker resolves the graph: the first one has written nothing.
//
// A lost attempt goes through these steps:
//
//  1. The job becomes restarting. All its workers get the command to stop, and are killed if they
//     do not end in time. Each of them gives back its slots when its process has ended, or when it keeps
//     its process for the next attempt (kept.go).
//  2. The job waits for the delay of its strategy, and until the workers on the task managers that
//     are left have ended. It also waits for workers on lost task managers, if they could change
//     what the next attempt writes (fence.go).
//  3. The job becomes waiting, at the position in the queue that its submission gave it.
//
// Messages of former attempts are ignored, because their workers are unknown then.

// maxCause bounds LostAttempt.Cause, in bytes.
const maxCause = 2 << 10

// maxCrashes is the number of attempts that may end in the same way by the crash of a worker. It
// applies whatever the strategy is, because a job whose program crashes deterministically would
// otherwise be restarted for ever.
const maxCrashes = 3

// loss describes the loss of an attempt to restarts.
type loss struct {
	now time.Duration // counted time of the loss
	ran time.Duration // time for which the attempt had run on all workers; 0 if it had not started
	// crash identifies how a worker's process crashed; "" if the attempt was lost in another way.
	crash string
	// outside says that the crash may have a cause outside the program, such as a signal.
	outside bool
}

// restarts decides whether a job is restarted, and when. It is a state machine whose only input
// is lost. Its zero value, with settings that have all defaults, is ready for use.
type restarts struct {
	settings wire.Restart
	count    int
	delay    time.Duration   // last delay of exponential-delay; 0 if the next delay is the first
	recent   []time.Duration // failure-rate: times of the restarts within the last window
	crashes  map[crash]int   // number of attempts that ended by each crash
	left     []time.Duration // times of the announced losses within the last leavesWindow (leave.go)
}

// crash is the key of restarts.crashes.
type crash struct {
	text    string
	outside bool
}

// lost is called when an attempt is lost. It returns the delay before the next attempt. If there
// must be none, it returns why; the text continues a message about the cause.
func (r *restarts) lost(l loss) (delay time.Duration, why string) {
	stable := l.ran >= r.settings.Window
	if stable {
		r.delay = 0
		// Kills from outside that are far apart have nothing to do with each other.
		maps.DeleteFunc(r.crashes, func(c crash, _ int) bool { return c.outside })
	}
	if l.crash != "" {
		if r.crashes == nil {
			r.crashes = make(map[crash]int)
		}
		key := crash{l.crash, l.outside}
		if r.crashes[key]++; r.crashes[key] >= maxCrashes {
			return 0, fmt.Sprintf("workers crashed in this way in %d attempts", maxCrashes)
		}
	}
	s := r.settings
	switch s.Strategy {
	case wire.RestartNone:
		return 0, "--restart is none"
	case wire.RestartFixedDelay:
		if r.count >= s.Attempts {
			return 0, fmt.Sprintf("--restart fixed-delay allows %s", humanize.Count(s.Attempts, "restart"))
		}
		delay = s.Delay
	case wire.RestartFailureRate:
		r.recent = slices.DeleteFunc(r.recent, func(at time.Duration) bool { return l.now-at >= s.Window })
		if len(r.recent) >= s.Attempts {
			return 0, fmt.Sprintf("--restart failure-rate allows %s within %s", humanize.Count(s.Attempts, "restart"), s.Window)
		}
		r.recent = append(r.recent, l.now)
		delay = s.Delay
	default:
		if s.Attempts > 0 && r.count >= s.Attempts {
			return 0, fmt.Sprintf("--restart exponential-delay allows %s", humanize.Count(s.Attempts, "restart"))
		}
		if r.delay == 0 {
			r.delay = s.Delay
		} else {
			r.delay = max(r.delay, min(2*r.delay, wire.MaxRestartDelay))
		}
		delay = r.delay
	}
	r.count++
	return delay, ""
}

// restartable reports whether the loss of the current attempt can lead to another attempt.
func (j *job) restartable() bool {
	switch j.info.State {
	case wire.JobDeploying, wire.JobRunning:
		return true
	case wire.JobFailing: // while the core looks for the cause
		return !j.computed && !j.unwanted
	}
	return false
}

// attemptLost restarts job j because its current attempt was lost for the reason f. If the job
// must not be restarted, it returns false. how says whether a worker crashed, and whether the loss
// was announced.
func (c *Core) attemptLost(j *job, f *wire.Failure, how ending) bool {
	if !j.restartable() {
		return false
	}
	delay, again := c.another(j, f, how)
	if again {
		c.restart(j, f, delay)
	}
	return again
}

// resolveAgain makes another worker resolve the graph of job j, as the one that did was lost for the
// reason f. That counts as the loss of an attempt. If there must be no other one, it returns false.
func (c *Core) resolveAgain(j *job, f *wire.Failure, how ending) bool {
	delay, again := c.another(j, f, how)
	if !again {
		return false
	}
	c.noteLost(j, f)
	j.resolver, j.queued, j.since, c.rethink = nil, true, c.clock.Counted(), true
	j.info.Detail = fmt.Sprintf("the worker that learned what the graph rests on was lost: %s; the next begins in %.1fs", shorten(firstLine(f.Error()), maxCause), delay.Seconds())
	if delay > 0 {
		j.reservedUntil = j.since + delay
	}
	j.detected = time.Time{}
	c.record(j, false)
	return true
}

// another decides whether there is another attempt after one that was lost for the reason f, and when.
func (c *Core) another(j *job, f *wire.Failure, how ending) (delay time.Duration, again bool) {
	if how == announced && j.restarts.leaves(c.clock.Counted()) {
		c.counters.Moves++
		return 0, true
	}
	l := loss{now: c.clock.Counted()}
	if j.started > 0 {
		l.ran = l.now - j.started + j.ranBefore
	}
	if how == crashed {
		// Attempts that come further by checkpoints do not crash in the same way. States in memory say
		// less about that: with each attempt they come closer to the superstep in which a program crashes.
		l.outside = f.Kind != wire.UserFailure
		from := j.info.Origin
		if !l.outside {
			from = lasting(from)
		}
		l.crash = fmt.Sprintf("%s, code %d, signal %q, from %s", shorten(firstLine(f.Message), maxCause), f.ExitCode, f.Signal, origin(from))
	}
	c.counters.countLost(f.Kind)
	delay, why := j.restarts.lost(l)
	if why != "" {
		if how == announced {
			why = fmt.Sprintf("the job has already left task managers %d times within %s, and %s", maxLeaves, leavesWindow, why)
		}
		j.refused = why
		return 0, false
	}
	c.counters.Restarts++
	return delay, true
}

// noteLost adds the current attempt, which was lost for the reason f, to the lost ones.
func (c *Core) noteLost(j *job, f *wire.Failure) {
	j.info.Failure, j.info.Restarts = nil, j.restarts.count
	ran := j.info.Started
	if ran.Before(j.deployed) { // it is that of an earlier attempt
		ran = time.Time{}
	}
	j.info.Lost = append(slices.Clone(j.info.Lost), wire.LostAttempt{
		Number: j.info.Attempt, Began: j.deployed, Ran: ran, Ended: c.wall(), Cause: shorten(f.Error(), maxCause), From: origin(j.info.Origin),
		Recovery: wire.Recovery{Detected: firstOf(j.detected, c.wall())},
	})
	j.noteFiles()
	j.info.Origin = nil
	j.info.Lost = j.info.Lost[max(0, len(j.info.Lost)-wire.MaxLost):]
}

// restart ends the current attempt of a job for the reason f. The next attempt begins after the delay.
func (c *Core) restart(j *job, f *wire.Failure, delay time.Duration) {
	now := c.clock.Counted()
	j.move = nil
	if !j.moving {
		j.precopy = nil
	}
	c.moveJob(j, jobLost, "")
	c.noteLost(j, f)
	j.restartAt = now + delay
	cause := *f
	cause.Message = firstLine(f.Message)
	what := "was lost"
	if j.moving {
		what = "has ended"
	}
	j.info.Detail = fmt.Sprintf("attempt %d %s: %s", j.info.Attempt, what, cause.Error())
	if wait := max(j.restartAt, j.fencedUntil) - now; j.fencedUntil > j.restartAt {
		j.info.Detail += fmt.Sprintf("; the next begins in %.1fs, when no earlier worker can be left", wait.Seconds())
	} else {
		j.info.Detail += fmt.Sprintf("; the next begins in %.1fs", wait.Seconds())
	}
	c.record(j, false)
	c.stopAll(j, orderedKeep, "the attempt "+what+": "+cause.Error())
	j.detected = time.Time{}
}

// lasting returns the part of an origin that is in checkpoints, or nil if there is none.
func lasting(o *wire.Origin) *wire.Origin {
	if o == nil {
		return nil
	}
	kept := *o
	kept.Queues = slices.DeleteFunc(slices.Clone(o.Queues), func(q wire.OriginQueue) bool { return q.InMemory })
	if kept.Begins() {
		return nil
	}
	return &kept
}

// origin says from which checkpoint an attempt continued; "" if the job has no checkpoints or the
// attempt did not come so far.
func origin(o *wire.Origin) string {
	if o == nil {
		return ""
	}
	return shorten(o.String(), maxCause)
}

// begins says where the queues of an attempt begin, as the detail of a running job.
func begins(o *wire.Origin) string {
	if o.Number == 0 && o.Savepoint == 0 && !o.Begins() {
		return o.String() // a sentence about each queue
	}
	return "from " + o.String()
}

// restartDue makes a job that is to be restarted wait for slots, once no worker of the lost
// attempt can disturb the next one and the delay is over.
func (c *Core) restartDue(j *job) {
	if now := c.clock.Counted(); j.processes > 0 || now < j.restartAt || now < j.fencedUntil {
		return
	}
	c.survivorsStopped(j) // of an attempt of which a restarted job manager knows no worker
	c.moveJob(j, jobRestarts, "")
	j.resolver, j.workers, j.takers, j.outcomes, j.info.Workers = nil, nil, nil, nil, nil
	j.fruitless = false
	if s := j.info.Checkpoints; s != nil {
		j.earlier = s.Checkpointed
	}
	j.ready, j.finished, j.preparing, j.started, j.ranBefore, j.fencedUntil = 0, 0, false, 0, 0, 0
	j.adopted, j.awaited, j.awaitsHeld = false, 0, false
	j.queued, c.rethink = true, true
	c.record(j, false)
}

// explain adds to the failure of a job that was restarted how many attempts there were, and why
// there is no further attempt.
func (j *job) explain(f *wire.Failure) *wire.Failure {
	note := ""
	if j.refused != "" && (j.restarts.count > 0 || len(j.restarts.left) >= maxLeaves || j.restarts.settings.Strategy != wire.RestartNone) {
		note = "; " + j.refused
	}
	if n := j.restarts.count; n > 0 {
		note += fmt.Sprintf("; it was the last of %d attempts", n+1)
	}
	if note == "" {
		return f
	}
	told := *f
	first, rest, more := strings.Cut(strings.TrimRight(f.Message, "\n"), "\n")
	if told.Message = first + note; more {
		told.Message += "\n" + rest
	}
	return &told
}

// firstOf returns the first of the times that is not zero.
func firstOf(times ...time.Time) (first time.Time) {
	for _, t := range times {
		if first.IsZero() {
			first = t
		}
	}
	return first
}

// firstLine returns the first line of a text, such as the text of a panic without its stack.
func firstLine(text string) string {
	first, _, _ := strings.Cut(text, "\n")
	return first
}
