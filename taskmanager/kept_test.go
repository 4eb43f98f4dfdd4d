//go:build unix

package taskmanager

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// attempt is a reference to the worker of one attempt of a job, on the task manager of a test.
type attempt struct {
	*site
	ref wire.WorkerRef
}

// attempt returns the worker of a job in attempt n. Another attempt has another number of the worker
// too.
func (b *site) attempt(job wire.JobID, n int) attempt {
	return attempt{b, wire.WorkerRef{Job: job, Attempt: n, Worker: n % 2}}
}

// deploy deploys the worker with the given number of slots, and waits until it is ready and its process
// is in the log. Lines that are on their way may be lost by a later Cancel.
func (a attempt) deploy(t *testing.T, script string, slots int) {
	t.Helper()
	a.send(t, script, slots)
	a.event(t, "ready", func(e *wire.WorkerEvent) bool { return e.Ready != nil })
	if strings.HasPrefix(script, "keep") {
		a.pid(t)
	}
}

// send sends the deployment of the worker.
func (a attempt) send(t *testing.T, script string, slots int) {
	t.Helper()
	d := deployment(script)
	d.WorkerRef, d.Keep = a.ref, true
	d.Slots = []wire.SlotRange{{Lo: 0, Hi: slots}, {Lo: slots, Hi: 2 * slots}}
	a.say(t, &wire.ToTaskManager{Deploy: d})
}

func (a attempt) command(t *testing.T, c wire.WorkerCommand) {
	t.Helper()
	c.WorkerRef = a.ref
	a.say(t, &wire.ToTaskManager{Worker: &c})
}

// event waits for an event of the worker.
func (a attempt) event(t *testing.T, what string, f func(*wire.WorkerEvent) bool) (found *wire.WorkerEvent) {
	t.Helper()
	a.await(t, what+" of "+a.ref.String(), func() bool {
		for _, h := range a.heard {
			if h.event != nil && h.ref == a.ref && f(h.event) {
				found = h.event
				return true
			}
		}
		return false
	})
	return found
}

func (a attempt) ended(t *testing.T) *wire.Ended {
	t.Helper()
	return a.event(t, "ended", func(e *wire.WorkerEvent) bool { return e.Ended != nil }).Ended
}

// keep makes the worker keep its process, and waits until that is reported.
func (a attempt) keep(t *testing.T) {
	t.Helper()
	a.command(t, wire.WorkerCommand{Cancel: &wire.Cancel{Reason: "restart", Keep: true}})
	require.Equal(t, &wire.Ended{Kept: true}, a.ended(t))
}

// log returns the worker's part of the log.
func (a attempt) log() string {
	var all strings.Builder
	for _, h := range a.events() {
		if h.ref == a.ref && h.piece != nil {
			all.Write(h.piece.Log)
		}
	}
	return all.String()
}

// pid returns the process of the worker, as it says in the log.
func (a attempt) pid(t *testing.T) (pid int) {
	t.Helper()
	said := regexp.MustCompile(fmt.Sprintf(`attempt %d in process (\d+)`, a.ref.Attempt))
	a.await(t, "the process in the log", func() bool {
		for _, h := range a.heard {
			if h.ref == a.ref && h.piece != nil {
				if m := said.FindSubmatch(h.piece.Log); m != nil {
					fmt.Sscan(string(m[1]), &pid)
					return true
				}
			}
		}
		return false
	})
	return pid
}

// awaitProcessEnd waits until there is no process with the number pid.
func awaitProcessEnd(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH }, enough, time.Millisecond, "process %d must end", pid)
}

// runs reports whether the process pid runs.
func runs(pid int) bool { return syscall.Kill(pid, 0) == nil }

// TestKeptProcess requires that the next attempt of a job runs in the process that the one before has
// kept, with a directory, a log and events of its own.
func TestKeptProcess(t *testing.T) {
	b := launched(t)
	first, second, third := b.attempt("j", 1), b.attempt("j", 2), b.attempt("j", 3)
	first.deploy(t, "keep", 2)
	first.command(t, wire.WorkerCommand{Start: &wire.Start{}})
	first.command(t, wire.WorkerCommand{Save: &wire.Save{}}) // another worker is lost
	require.Equal(t, &wire.Ended{Kept: true}, first.ended(t))
	failed := first.event(t, "failed", func(e *wire.WorkerEvent) bool { return e.Failed != nil }).Failed
	require.Equal(t, wire.PeerFailure, failed.Kind)
	require.Empty(t, names(t, filepath.Join(b.dir, "workers")), "the directory of the first attempt")
	pid := first.pid(t)
	require.True(t, runs(pid))

	second.deploy(t, "keep", 3)
	second.command(t, wire.WorkerCommand{Start: &wire.Start{}})
	require.Equal(t, pid, second.pid(t))
	require.Len(t, names(t, filepath.Join(b.dir, "workers")), 1)
	second.command(t, wire.WorkerCommand{Save: &wire.Save{}})
	require.Equal(t, &wire.Ended{Kept: true}, second.ended(t))

	third.deploy(t, "keep", 1)
	third.command(t, wire.WorkerCommand{Exit: &wire.Exit{}})
	require.Equal(t, &wire.Ended{}, third.ended(t))
	require.Equal(t, pid, third.pid(t))
	awaitProcessEnd(t, pid)
	require.Equal(t, fmt.Sprintf("attempt 1 in process %d\nstarted, directory: <nil>\nkeeps its process\n", pid), first.log())
	require.Equal(t, fmt.Sprintf("attempt 2 in process %d\nstarted, directory: <nil>\nkeeps its process\n", pid), second.log())
	require.Equal(t, fmt.Sprintf("attempt 3 in process %d\n", pid), third.log())

	order := []string{}
	for _, h := range b.events() {
		if e := h.event; e != nil && (e.Ready != nil || e.Ended != nil) {
			order = append(order, fmt.Sprint(h.ref.Attempt, e.Ended != nil))
		}
	}
	require.Equal(t, []string{"1 false", "1 true", "2 false", "2 true", "3 false", "3 true"}, order)
}

// lists waits for a heartbeat that lists the given workers.
func (b *site) lists(t *testing.T, running, kept []wire.WorkerRef) {
	t.Helper()
	b.await(t, fmt.Sprintf("a heartbeat with running workers %v and kept ones %v", running, kept), func() bool {
		return slices.Equal(b.running, running) && slices.Equal(b.kept, kept)
	})
}

// TestKeptProcessIsListed requires that heartbeats list a worker that has kept its process, not as
// running, until the process has another worker.
func TestKeptProcessIsListed(t *testing.T) {
	b := launched(t)
	first, second := b.attempt("j", 1), b.attempt("j", 2)
	first.deploy(t, "keep", 1)
	first.keep(t)
	b.lists(t, nil, []wire.WorkerRef{first.ref})
	second.deploy(t, "keep", 1)
	require.Equal(t, first.pid(t), second.pid(t))
	b.lists(t, []wire.WorkerRef{second.ref}, nil)
}

// TestEndOfKeptProcess requires that a registration lists a process that waits, and that its end is told at
// once.
func TestEndOfKeptProcess(t *testing.T) {
	t.Parallel()
	b := manage(t, newFakeJobManager(t), func(c *Config) { c.Heartbeat = time.Hour })
	first := b.attempt("j", 1)
	first.deploy(t, "keep", 1)
	first.keep(t)
	pid := first.pid(t)
	b.server.Stop()
	b.start()
	b.await(t, "another registration", func() bool { return len(b.registers) == 2 })
	require.Equal(t, []wire.WorkerRef{first.ref}, b.registers[1].Kept)
	b.await(t, "a heartbeat that lists the process", func() bool { return slices.Equal(b.kept, []wire.WorkerRef{first.ref}) })
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	b.await(t, "a heartbeat that does not list it", func() bool { return len(b.kept) == 0 })
}

// TestUnaskedKept requires that a worker that may not keep its process ends.
func TestUnaskedKept(t *testing.T) {
	t.Parallel()
	b := manage(t, newFakeJobManager(t), func(c *Config) { c.Grace = 200 * time.Millisecond })
	b.begin(t, "keep")
	b.fakeJobManager.command(t, wire.WorkerCommand{Save: &wire.Save{}})
	e := b.event(t, "ended", func(e *wire.WorkerEvent) bool { return e.Ended != nil })
	require.False(t, e.Ended.Kept)
}

// TestKeptProcessOfAnotherJob requires that a job does not get the process of another job.
func TestKeptProcessOfAnotherJob(t *testing.T) {
	b := launched(t)
	first, other := b.attempt("j", 1), b.attempt("other", 2)
	first.deploy(t, "keep", 1)
	first.keep(t)
	other.deploy(t, "keep", 1)
	require.NotEqual(t, first.pid(t), other.pid(t))
	require.True(t, runs(first.pid(t)), "there are slots for both")
}

// TestKeptProcessMakesRoom requires that the oldest kept processes end when their slots are needed. One without
// slots stays.
func TestKeptProcessMakesRoom(t *testing.T) {
	t.Parallel()
	b := manage(t, newFakeJobManager(t), func(c *Config) { c.Slots, c.KeepFor = 4, time.Hour })
	none := b.attempt("none", 1)
	none.deploy(t, "keep", 0)
	none.keep(t)
	one, two, three := b.attempt("one", 1), b.attempt("two", 1), b.attempt("three", 1)
	for _, a := range []attempt{one, two, three} {
		a.deploy(t, "keep", 1)
		a.keep(t)
	}
	other := b.attempt("other", 1)
	other.deploy(t, "obey", 3)
	awaitProcessEnd(t, one.pid(t))
	awaitProcessEnd(t, two.pid(t))
	require.True(t, runs(three.pid(t)), "1 of 4 slots is left")
	require.True(t, runs(none.pid(t)), "its end makes no room")
	again := b.attempt("three", 2)
	again.deploy(t, "keep", 1)
	require.Equal(t, three.pid(t), again.pid(t))
}

// TestKeptProcessThatHeldSlots requires that a process that held slots for the next attempt ends when they are needed.
func TestKeptProcessThatHeldSlots(t *testing.T) {
	t.Parallel()
	b := manage(t, newFakeJobManager(t), func(c *Config) { c.Slots, c.KeepFor = 4, time.Hour })
	one, taker := b.attempt("one", 1), b.attempt("taker", 1)
	one.deploy(t, "keep", 2)
	one.keep(t)
	d := deployment("keep")
	d.WorkerRef, d.Keep, d.Slots, d.Holds = taker.ref, true, []wire.SlotRange{{Lo: 0, Hi: 2}, {Lo: 2, Hi: 2}}, 3
	taker.say(t, &wire.ToTaskManager{Deploy: d})
	taker.pid(t)
	awaitProcessEnd(t, one.pid(t))
	taker.keep(t)
	b.attempt("other", 1).deploy(t, "obey", 2)
	awaitProcessEnd(t, taker.pid(t))
}

// TestKeptProcessEnds requires that a kept process ends when it should: for each reason, the next
// attempt gets another process.
func TestKeptProcessEnds(t *testing.T) {
	t.Parallel()
	long := func(c *Config) { c.KeepFor, c.Grace = time.Hour, time.Hour }
	command := func(c wire.WorkerCommand) func(*testing.T, attempt) {
		return func(t *testing.T, a attempt) { a.command(t, c) }
	}
	for _, test := range []struct {
		name, how string
		adapt     func(*Config)
		do        func(*testing.T, attempt)
	}{
		{"exit", "", long, command(wire.WorkerCommand{Exit: &wire.Exit{}})},
		{"cancel", "", long, command(wire.WorkerCommand{Cancel: &wire.Cancel{Reason: "enough"}})},
		{"kill", "deaf", long, command(wire.WorkerCommand{Kill: &wire.Kill{}})},
		{"exit without an effect", "deaf", func(c *Config) { long(c); c.Grace = 200 * time.Millisecond }, command(wire.WorkerCommand{Exit: &wire.Exit{}})},
		{"time limit", "", func(c *Config) { long(c); c.KeepFor = 200 * time.Millisecond }, nil},
		{"time limit without an effect", "deaf", func(c *Config) { c.KeepFor, c.Grace = 200*time.Millisecond, 200*time.Millisecond }, nil},
		{"dies", "", long, func(t *testing.T, a attempt) { require.NoError(t, syscall.Kill(a.pid(t), syscall.SIGKILL)) }},
		{"silent", "stop", func(c *Config) { long(c); c.Silence = 300 * time.Millisecond }, nil},
		{"breaks the protocol", "chatter", long, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := manage(t, newFakeJobManager(t), test.adapt)
			first, second := b.attempt("j", 1), b.attempt("j", 2)
			first.deploy(t, "keep "+test.how, 2)
			first.keep(t)
			if test.do != nil {
				test.do(t, first)
			}
			pid := first.pid(t)
			awaitProcessEnd(t, pid)
			second.deploy(t, "keep", 2)
			require.NotEqual(t, pid, second.pid(t))
			require.Len(t, names(t, filepath.Join(b.dir, "workers")), 1)
		})
	}
}

// TestKeptProcessDiesAtHandover requires that the end of a process that was just handed over counts as
// a crash of its new worker.
func TestKeptProcessDiesAtHandover(t *testing.T) {
	b := launched(t)
	first, second := b.attempt("j", 1), b.attempt("j", 2)
	first.deploy(t, "keep die late", 2)
	first.keep(t)
	second.send(t, "keep", 2)
	e := second.ended(t)
	require.True(t, e.Crashed)
	require.Equal(t, "user code ended the process (os.Exit) with code 3", e.Failure.Message)
	require.Equal(t, second.ref.Worker, e.Failure.Worker)
	require.Empty(t, e.Failure.LastLines, "the lines of the first attempt are not those of the second")
}

// TestRepeatedCancelOfKept requires that a Cancel with Keep that the job manager repeats does not end
// the process.
func TestRepeatedCancelOfKept(t *testing.T) {
	b := launched(t)
	first, second := b.attempt("j", 1), b.attempt("j", 2)
	first.deploy(t, "keep", 2)
	first.keep(t)
	first.command(t, wire.WorkerCommand{Cancel: &wire.Cancel{Reason: "restart", Keep: true}})
	second.deploy(t, "keep", 2)
	require.Equal(t, first.pid(t), second.pid(t))
}

// TestStopWithKept requires that a task manager that stops, or whose lease has lapsed, ends kept
// processes.
func TestStopWithKept(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		do   func(*site)
	}{
		{"stop", func(b *site) { b.cancel() }},
		{"lease", func(b *site) { b.change(func() { b.withoutAcks = true }) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newFakeJobManager(t)
			b.lease = 2 * time.Second
			s := manage(t, b, func(c *Config) { c.KeepFor = time.Hour })
			first := s.attempt("j", 1)
			first.deploy(t, "keep deaf", 2)
			first.keep(t)
			pid := first.pid(t)
			test.do(s)
			awaitProcessEnd(t, pid)
		})
	}
}

// TestNoDirectoryAtHandover requires that a worker fails, and its process ends, if the task manager
// cannot make its directory.
func TestNoDirectoryAtHandover(t *testing.T) {
	b := launched(t)
	first, second := b.attempt("j", 1), b.attempt("j", 2)
	first.deploy(t, "keep", 2)
	first.keep(t)
	workers := filepath.Join(b.dir, "workers")
	require.NoError(t, os.Remove(workers))
	second.send(t, "keep", 2)
	e := second.ended(t)
	require.Equal(t, wire.ClusterFailure, e.Failure.Kind)
	require.Contains(t, e.Failure.Message, "make the worker's directory")
	awaitProcessEnd(t, first.pid(t))
	require.NoError(t, os.Mkdir(workers, 0o700))
}

// TestTaskManagerStaysForKeptProcesses requires that a task manager that is to stop stays until the next
// attempt, in which a process has no slots, is done with it, or until nobody needs the process.
func TestTaskManagerStaysForKeptProcesses(t *testing.T) {
	t.Parallel()
	for _, taken := range []bool{true, false} {
		b := manage(t, newFakeJobManager(t), func(c *Config) { c.KeepFor, c.DrainWithin = time.Hour, enough })
		first, second := b.attempt("j", 1), b.attempt("j", 2)
		first.deploy(t, "keep", 2)
		b.cancel()
		b.announced(t)
		first.keep(t)
		b.stays(t)
		last := first
		if taken {
			second.deploy(t, "keep", 0)
			require.Equal(t, first.pid(t), second.pid(t))
			b.stays(t)
			last = second
		}
		last.command(t, wire.WorkerCommand{Exit: &wire.Exit{}})
		require.NoError(t, <-b.over)
	}
}
