//go:build unix

package taskmanager

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// leaves runs a task manager that stays for the given time when it is to stop, with a worker that obeys.
func leaves(t *testing.T, jm *fakeJobManager, within time.Duration, adapt func(*Config)) *site {
	t.Helper()
	b := manage(t, jm, func(c *Config) {
		c.DrainWithin = within
		if adapt != nil {
			adapt(c)
		}
	})
	b.deploy(t, "obey")
	b.ready(t)
	return b
}

// announced waits for the announcement that the task manager leaves.
func (b *fakeJobManager) announced(t *testing.T) wire.Leaving {
	t.Helper()
	b.await(t, "an announcement", func() bool { return len(b.leaving) > 0 })
	return b.leaving[0]
}

// stays requires that the task manager runs on while some heartbeats pass.
func (b *site) stays(t *testing.T) {
	t.Helper()
	b.awaitHeartbeats(t, 5)
	select {
	case err := <-b.over:
		require.FailNow(t, "the task manager must stay", "it ended: %v", err)
	default:
	}
}

// TestHandsOver requires that a task manager that is to stop announces that, stays until its worker
// has ended on command, and then leaves.
func TestHandsOver(t *testing.T) {
	t.Parallel()
	b := leaves(t, newFakeJobManager(t), enough, nil)
	b.cancel()
	l := b.announced(t)
	require.Equal(t, "it was told to", l.Reason)
	require.Greater(t, l.Within, enough/2)
	require.LessOrEqual(t, l.Within, enough)
	b.stays(t)
	b.command(t, wire.WorkerCommand{Exit: &wire.Exit{}})
	require.NoError(t, <-b.over)
	require.Nil(t, b.endedWith(t))
	b.await(t, "farewell", func() bool { return b.left != nil })
	require.Equal(t, "was stopped (it was told to)", b.left.Reason)
	require.Len(t, b.leaving, 1)
}

// endedWith returns the failure in the event Ended of the worker, also if the task manager has left.
func (b *fakeJobManager) endedWith(t *testing.T) *wire.Failure {
	t.Helper()
	return b.event(t, "ended", func(e *wire.WorkerEvent) bool { return e.Ended != nil }).Ended.Failure
}

// TestTimeToLeaveIsOver requires that a task manager kills the worker that has not ended in time, and
// that its log says for which job it waited, and until when.
func TestTimeToLeaveIsOver(t *testing.T) {
	t.Parallel()
	said := make(lines, 1000)
	b := leaves(t, newFakeJobManager(t), 300*time.Millisecond, func(c *Config) {
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: said, Level: hclog.Info})
	})
	b.cancel()
	require.NoError(t, <-b.over)
	require.Equal(t, "the task manager was stopped", b.endedWith(t).Message)
	b.await(t, "farewell", func() bool { return b.left != nil })
	log := said.all()
	require.Regexp(t, `waits until its jobs go on elsewhere or have ended: jobs=a-job until=\d\d:\d\d:\d\d`, log)
	require.Contains(t, log, "the time to leave, 300ms (--drain-within), is over: killing the workers that are left: jobs=a-job")
}

// all returns the lines that were received.
func (l lines) all() string {
	var all strings.Builder
	for {
		select {
		case line := <-l:
			all.WriteString(line)
		default:
			return all.String()
		}
	}
}

// TestLeavesAtOnce requires that a task manager that is told to stop again kills its worker and leaves.
func TestLeavesAtOnce(t *testing.T) {
	t.Parallel()
	again := make(chan struct{})
	b := leaves(t, newFakeJobManager(t), enough, func(c *Config) { c.AtOnce = again })
	b.cancel()
	b.announced(t)
	b.stays(t)
	close(again)
	require.NoError(t, <-b.over)
	require.Equal(t, "the task manager was stopped", b.endedWith(t).Message)
	b.await(t, "farewell", func() bool { return b.left != nil })
}

// TestLeavesWithoutWorkers requires that a task manager without workers does not stay, whether the job
// manager can be reached or not.
func TestLeavesWithoutWorkers(t *testing.T) {
	t.Parallel()
	for name, reached := range map[string]bool{"reached": true, "away": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			jm := newFakeJobManager(t)
			b := manage(t, jm, func(c *Config) { c.DrainWithin = time.Hour })
			if !reached {
				jm.server.Stop()
			}
			b.cancel()
			require.NoError(t, <-b.over)
			if reached {
				jm.await(t, "farewell", func() bool { return jm.left != nil })
			}
		})
	}
}

// TestLeavesWhenReconnected breaks the connection of a task manager that leaves. It must repeat the
// announcement, with less time, when it registers again, and stay until its worker has ended.
func TestLeavesWhenReconnected(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	b := leaves(t, jm, enough, nil)
	b.cancel()
	before := b.announced(t)
	jm.server.Stop()
	jm.start()
	jm.await(t, "another registration", func() bool { return len(jm.registers) == 2 })
	require.Nil(t, jm.registers[0].Leaving)
	again := jm.registers[1].Leaving
	require.NotNil(t, again)
	require.Equal(t, before.Reason, again.Reason)
	require.Less(t, again.Within, before.Within)
	require.Positive(t, again.Within)
	b.stays(t)
	b.command(t, wire.WorkerCommand{Exit: &wire.Exit{}})
	require.NoError(t, <-b.over)
	require.Nil(t, b.endedWith(t))
	jm.await(t, "farewell", func() bool { return jm.left != nil })
	require.Len(t, jm.leaving, 1)
}

// TestLeavesWhileAway lets the worker of a task manager that leaves end while there is no connection.
// The task manager must stay until the job manager is back, and then report the end.
func TestLeavesWhileAway(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	b := leaves(t, jm, enough, nil)
	pid := b.pid(t)
	b.cancel()
	b.announced(t)
	jm.server.Stop()
	self, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, self.Kill())
	require.Eventually(t, func() bool { return len(names(t, filepath.Join(b.dir, "workers"))) == 0 }, enough, time.Millisecond)
	jm.start()
	require.NoError(t, <-b.over)
	require.Contains(t, b.endedWith(t).Message, "killed by signal")
	jm.await(t, "farewell", func() bool { return jm.left != nil })
}

// TestRefusedWhileLeaving requires that a task manager that leaves ends with an error if the job
// manager refuses it for good.
func TestRefusedWhileLeaving(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	b := leaves(t, jm, enough, nil)
	b.cancel()
	b.announced(t)
	jm.change(func() { jm.refuse = &wire.Refused{Reason: "no", Final: true} })
	jm.server.Stop()
	jm.start()
	require.ErrorAs(t, <-b.over, new(*RefusedError))
}

// TestPreemptionNotice requires that a command that ends with exit code 0 makes the task manager leave
// as if it were told to stop. A command that fails must be logged and started again.
func TestPreemptionNotice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	said := make(lines, 1000)
	b := leaves(t, newFakeJobManager(t), enough, func(c *Config) {
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: said, Level: hclog.Info})
		c.PreemptionNotice = "cd " + dir + ` && if mkdir first; then echo no such instance >&2; exit 7; fi; until test -e taken; do sleep 0.01; done`
	})
	require.Eventually(t, func() bool { return len(names(t, dir)) == 1 }, enough, time.Millisecond)
	b.stays(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "taken"), nil, 0o600))
	require.Equal(t, "preemption notice", b.announced(t).Reason)
	b.command(t, wire.WorkerCommand{Exit: &wire.Exit{}})
	require.NoError(t, <-b.over)
	require.Nil(t, b.endedWith(t))
	b.await(t, "farewell", func() bool { return b.left != nil })
	require.Equal(t, "was stopped (preemption notice)", b.left.Reason)
	log := said.all()
	require.Contains(t, log, `the command of --preemption-notice ended with exit code 7, and only 0 means that the machine is taken away; it is started again`)
	require.Contains(t, log, "no such instance")
}

// TestPreemptionNoticeEnds requires that the command and the processes that it started end with the
// task manager.
func TestPreemptionNoticeEnds(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := manage(t, newFakeJobManager(t), func(c *Config) {
		c.PreemptionNotice = "cd " + dir + "; sleep 1000 & echo $! $$ > part && mv part pids && wait"
	})
	var pids []int
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(filepath.Join(dir, "pids"))
		for _, field := range strings.Fields(string(data)) {
			pid, err := strconv.Atoi(field)
			require.NoError(t, err)
			pids = append(pids, pid)
		}
		return err == nil
	}, enough, time.Millisecond)
	require.Len(t, pids, 2)
	b.cancel()
	require.NoError(t, <-b.over)
	for _, pid := range pids {
		requireGone(t, pid, enough)
	}
}

// TestNoticeFailures requires that the log says how a command failed.
func TestNoticeFailures(t *testing.T) {
	for want, f := range map[string]string{
		"does not run: no shell":    howFailed(Exit{}, errors.New("no shell")),
		"ended by a signal: killed": howFailed(Exit{Code: -1, Signal: "killed"}, nil),
		"ended with exit code 2, and only 0 means that the machine is taken away": howFailed(Exit{Code: 2}, nil),
	} {
		require.Equal(t, want, f)
	}
}
