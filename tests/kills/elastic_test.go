//go:build linux && !race

package kills

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
)

// The tests of this file repeat failures that elastic training systems are known for, as users
// reported them. Each of them says what went wrong there.

// steady is the shape of the clusters of these tests.
var steady = shape{taskManagers: 2, slots: 1, memory: "1GiB", detection: 1500 * time.Millisecond, lease: 2 * time.Second}

// restarting returns the arguments of a job with checkpoints that is restarted at once.
func (c *cluster) restarting(parallelism int) []string {
	return []string{"--parallelism", strconv.Itoa(parallelism), "--restart-delay", "10ms", "--checkpoint-dir", c.store(), "--checkpoint-every", "10steps"}
}

// comesTo waits for a moment of the job, which must come before the job ends.
func (r *run) comesTo(s strike) {
	r.c.t.Helper()
	require.True(r.c.t, r.await(s), "the job must come to the moment %q", s.moment)
}

// nextCheckpoint waits until another checkpoint is complete.
func (r *run) nextCheckpoint() {
	r.c.t.Helper()
	complete := func() (n int) {
		for _, name := range r.saves.seen() {
			if strings.HasPrefix(name, "checkpoint-") {
				n++
			}
		}
		return n
	}
	before := complete()
	require.Eventually(r.c.t, func() bool { return complete() > before }, waitLimit, time.Millisecond)
}

// attempt waits until the given attempt has done a superstep, and returns how long that took.
func (r *run) attempt(n int) time.Duration {
	r.c.t.Helper()
	began := time.Now()
	require.Eventually(r.c.t, func() bool {
		now := r.observer.job()
		return now.Attempt >= n && now.superstep() > 0
	}, waitLimit, time.Millisecond, "attempt %d must run: %+v", n, r.observer.job())
	return time.Since(began)
}

// succeeds waits for the end of the job, which must have the outcome of an undisturbed run and
// leave nothing behind.
func (r *run) succeeds() {
	r.c.t.Helper()
	require.Zero(r.c.t, r.client.wait(), "%s", &r.client.err)
	r.requireFinished()
	r.requireNothingLeft(true)
}

// TestALostMachineStartsARestart kills a machine while nobody else reports an error. In other
// systems the heartbeats of the machine expire without any effect, and the survivors wait for it
// for ever. The job must go on with the other machine within 10 s.
func TestALostMachineStartsARestart(t *testing.T) {
	t.Parallel()
	c := startCluster(t, steady)
	r := c.begin(paused(300), c.restarting(1)...)
	r.comesTo(strike{moment: iterating, step: 20})
	at := c.nodes[0]
	if r.observer.job().Workers[0].TaskManager != at.name {
		at = c.nodes[1]
	}
	_ = at.cmd.Process.Kill()
	killWorkers(c.workersOf(at))
	_ = at.cmd.Wait()
	took := r.attempt(2)
	c.story.tell("attempt 2 runs %v after the kill", took)
	require.Less(t, took, 10*time.Second)
	require.Contains(t, r.observer.job().Lost[0].Cause, at.name)
	c.startNode(at)
	r.succeeds()
}

// TestMachinesLeaveAndComeBack lets one of three machines leave and come back again and again
// while a job runs. In other systems the leave of one closes the rendezvous for all, and later
// joins are refused.
func TestMachinesLeaveAndComeBack(t *testing.T) {
	t.Parallel()
	s := steady
	s.taskManagers = 3
	c := startCluster(t, s)
	r := c.begin(paused(testsize.Of(600, 2500)), c.restarting(2)...)
	r.comesTo(strike{moment: iterating, step: 5})
	for i := range testsize.Of(2, 10) {
		now := r.observer.job()
		n := c.named(now.Workers[i%2].TaskManager)
		c.story.tell("%s leaves", n.name)
		require.NoError(t, n.cmd.Process.Signal(syscall.SIGTERM))
		_ = n.cmd.Wait()
		r.attempt(now.Attempt + 1)
		c.startNode(n)
		c.requireRegistered()
	}
	r.succeeds()
}

// named returns the node of a name.
func (c *cluster) named(name string) *node {
	for _, n := range c.nodes {
		if n.name == name {
			return n
		}
	}
	require.FailNow(c.t, "no such node", name)
	return nil
}

// requireRegistered waits until all task managers are registered.
func (c *cluster) requireRegistered() {
	c.t.Helper()
	var o struct{ Slots int }
	require.Eventually(c.t, func() bool {
		return c.ask(c.t.Context(), "overview", &o) == nil && o.Slots == c.slotsInAll()
	}, waitLimit, 5*time.Millisecond, "all task managers must register")
}

// TestMoreMachinesAfterARestart restarts an attempt, and then adds a machine that a waiting job
// needs. In another system the stop before a restart shut down what later joins need.
func TestMoreMachinesAfterARestart(t *testing.T) {
	t.Parallel()
	c := startCluster(t, steady)
	first := c.begin(paused(700), c.restarting(2)...)
	first.comesTo(strike{moment: iterating, step: 5})
	killWorkers(c.workersOf(c.nodes[1]))
	first.attempt(2)

	other, elsewhere := paused(20), t.TempDir()
	second := c.submit(append(other.line(elsewhere, t.TempDir()), "--parallelism", "1")...)
	c.addNode()
	require.Zero(t, second.wait(), "the job that waits must get the slot of the new machine: %s", &second.err)
	require.Equal(t, other.undisturbed(t).files, files(t, elsewhere))
	require.NotEqual(t, "finished", first.observer.job().State, "the first job must run all the time")
	first.succeeds()
}

// TestQuickReturnsCountAsRestarts lets a task manager die and come back at once, again and again.
// In another system a machine that is back before its absence is noticed costs no restart, so
// that a job on a flapping machine is restarted for ever. The job must fail when its budget is
// used up.
func TestQuickReturnsCountAsRestarts(t *testing.T) {
	t.Parallel()
	c := startCluster(t, steady)
	args := append(c.restarting(2), "--restart", "fixed-delay", "--restart-attempts", "2")
	r := c.begin(paused(1000), args...)
	for i := range 3 {
		r.attempt(i + 1)
		n := c.nodes[i%2]
		n.killNode()
		c.startNode(n)
	}
	require.Equal(t, 1, r.client.wait())
	require.Contains(t, r.client.err.String(), "--restart fixed-delay allows 2 restarts")
	require.Contains(t, r.client.err.String(), "it was the last of 3 attempts")
	r.requireNoOutputs()
	r.requireNothingLeft(false)
}

// TestALateMachineIsTakenIn submits a job that needs more slots than there are, and adds the
// machine after many times the wait of any handshake. In another system a last call ends after
// 30 s, and machines that a cloud starts later are shut out.
func TestALateMachineIsTakenIn(t *testing.T) {
	t.Parallel()
	c := startCluster(t, steady)
	r := c.begin(paused(50), c.restarting(3)...)
	require.Eventually(t, func() bool { return r.observer.job().State == "waiting" }, waitLimit, time.Millisecond)
	late := time.NewTimer(testsize.Of(time.Second, 40*time.Second))
	defer late.Stop()
	<-late.C
	require.Equal(t, "waiting", r.observer.job().State)
	c.addNode()
	r.succeeds()
}

// addNode starts a further task manager.
func (c *cluster) addNode() {
	c.t.Helper()
	c.taskManagers++
	n := newNode(c, len(c.nodes))
	c.nodes = append(c.nodes, n)
	c.startNode(n)
}

// TestTooFewMachinesThenOthers lets machines leave until too few are left, and then adds others.
// In another system some of the ranks skip the exchange of state then, and all wait for each
// other for ever. The job must continue from its checkpoint on machines that had no part in it.
func TestTooFewMachinesThenOthers(t *testing.T) {
	t.Parallel()
	c := startCluster(t, steady)
	r := c.begin(paused(300), c.restarting(2)...)
	r.comesTo(strike{moment: iterating, step: 30})
	for _, n := range c.nodes {
		require.NoError(t, n.cmd.Process.Signal(syscall.SIGTERM))
		_ = n.cmd.Wait()
		n.cmd = nil
	}
	require.Eventually(t, func() bool {
		now := r.observer.job()
		return now.State == "waiting" && now.Attempt > 0
	}, waitLimit, time.Millisecond, "the job must wait, not fail: %+v", r.observer.job())
	c.nodes, c.taskManagers = nil, 0
	for i := range 2 {
		c.taskManagers++
		n := newNode(c, 10+i)
		c.nodes = append(c.nodes, n)
		c.startNode(n)
	}
	r.attempt(2)
	require.Regexp(t, `^checkpoint \d+ of .*: queue "states" continues after superstep \d+$`, r.observer.job().From)
	r.succeeds()
}

// TestABlamedMachineStillWorks kills the workers of one machine until others are preferred to
// it. In another system such a machine is never used again, so that a passing fault costs it for
// ever. A job that needs all slots must get those of this machine too, and succeed.
func TestABlamedMachineStillWorks(t *testing.T) {
	t.Parallel()
	c := startCluster(t, steady)
	r := c.begin(paused(600), c.restarting(2)...)
	for i := range 3 {
		r.attempt(i + 1)
		r.nextCheckpoint() // attempts that come further do not crash in the same way
		killWorkers(c.workersOf(c.nodes[1]))
	}
	r.attempt(4)
	require.Contains(t, fmt.Sprint(r.observer.job().Workers), "tm1")
	require.Contains(t, c.client("nodes").Stdout, "avoided")
	r.succeeds()
}
