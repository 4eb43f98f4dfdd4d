//go:build unix

package taskmanager

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestEnds ends workers in every way in which user code can end a worker, and compares the
// failures with the expected failures.
func TestEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		script  string
		kind    wire.FailureKind
		message []string // texts that the failure's message must contain
		code    int
		signal  string
		last    string // expected last line of output; "" accepts any line
	}{
		{"panic", wire.UserFailure, []string{"panic: index 7 out of range", "goroutine ", "taskmanager.explode"}, 2, "", ""},
		{"exit 0", wire.UserFailure, []string{"user code ended the process (os.Exit) with code 0"}, 0, "", ""},
		{"exit 3", wire.UserFailure, []string{"user code ended the process (os.Exit) with code 3"}, 3, "", ""},
		{"kill-itself", wire.LostFailure, []string{"killed by signal: killed; perhaps out of memory"}, -1, "killed", ""},
		{"garbage-pipe", wire.MisuseFailure, []string{"is not valid", "this", "another version"}, -1, "killed", ""},
	} {
		t.Run(test.script, func(t *testing.T) {
			b := launched(t)
			b.begin(t, test.script)
			f := b.ended(t)
			require.NotNil(t, f)
			require.Equal(t, test.kind, f.Kind, f.Message)
			for _, part := range test.message {
				require.Contains(t, f.Message, part)
			}
			require.Equal(t, test.code, f.ExitCode)
			require.Equal(t, test.signal, f.Signal)
			require.Equal(t, 0, f.Worker)
			require.Equal(t, "tm", f.TaskManager)
		})
	}
}

// TestEndsEarly runs workers that end or misbehave before they are ready, and compares the
// failures with the expected failures.
func TestEndsEarly(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		script  string
		kind    wire.FailureKind
		message string
	}{
		{"panic-early", wire.UserFailure, "panic: too early"},
		{"leave-early", wire.ClusterFailure, "ended with code 3 instead of becoming a worker"},
		{"out-of-turn", wire.MisuseFailure, `sent "finished" while it was starting`},
		{"two-at-once", wire.MisuseFailure, "a frame has 2 messages"},
		{"resolve", wire.MisuseFailure, `it sent "resolved", which it was not asked for`},
		{"unknown", wire.ClusterFailure, "ended with code 98"},
	} {
		t.Run(test.script, func(t *testing.T) {
			b := launched(t)
			b.deploy(t, test.script)
			f := b.ended(t)
			require.NotNil(t, f)
			require.Equal(t, test.kind, f.Kind, f.Message)
			require.Contains(t, f.Message, test.message)
		})
	}
}

func TestOutOfMemory(t *testing.T) {
	b := launched(t)
	b.begin(t, "allocate")
	f := b.ended(t)
	require.NotNil(t, f)
	require.Equal(t, wire.UserFailure, f.Kind)
	require.NotEqual(t, 96, f.ExitCode, "the worker must be able to set its memory limit, or the test proves nothing")
	if !testsize.Race { // with the race detector, the runtime fails with another message
		require.Contains(t, f.Message, "fatal error: ")
		require.Contains(t, f.Message, "memory")
	}
}

func TestStopped(t *testing.T) {
	t.Parallel()
	b := manage(t, newFakeJobManager(t), func(c *Config) { c.Silence = time.Second })
	b.begin(t, "stop-itself")
	f := b.ended(t)
	require.NotNil(t, f)
	require.Equal(t, wire.LostFailure, f.Kind)
	require.Contains(t, f.Message, "the worker was silent for")
	require.Equal(t, "killed", f.Signal)
}

// TestStoppedEarly requires that a worker that is stopped (SIGSTOP) before its first frame is
// killed long before the time limit for the first frame.
func TestStoppedEarly(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		return // on other systems a stopped process is not detected, and only Startup limits the wait
	}
	b := manage(t, newFakeJobManager(t), func(c *Config) { c.Startup = time.Hour })
	d := deployment("stop-early")
	d.Silence = 400 * time.Millisecond
	b.say(t, &wire.ToTaskManager{Deploy: d})
	f := b.ended(t)
	require.NotNil(t, f)
	require.Equal(t, wire.LostFailure, f.Kind)
	require.Contains(t, f.Message, "the worker was silent for 0.")
}

func TestClosedPipe(t *testing.T) {
	t.Parallel()
	b := manage(t, newFakeJobManager(t), func(c *Config) { c.Silence = time.Second })
	b.deploy(t, "close-pipe")
	f := b.ended(t)
	require.NotNil(t, f)
	require.Equal(t, wire.LostFailure, f.Kind)
	require.Contains(t, f.Message, "silent")
}

func TestNeverReady(t *testing.T) {
	b := launched(t)
	b.deploy(t, "never-ready")
	b.await(t, "the worker in heartbeats", func() bool { return b.beats > 10 })
	b.command(t, wire.WorkerCommand{Kill: &wire.Kill{}})
	require.Nil(t, b.ended(t), "a worker that ends after the command to end must have no failure")
}

func TestNeverSpeaks(t *testing.T) {
	t.Parallel()
	b := manage(t, newFakeJobManager(t), func(c *Config) { c.Startup = 300 * time.Millisecond })
	b.deploy(t, "never-speaks")
	f := b.ended(t)
	require.NotNil(t, f)
	require.Equal(t, wire.ClusterFailure, f.Kind)
	require.Contains(t, f.Message, "sent nothing as a worker within 300ms")
}

func TestFailed(t *testing.T) {
	b := launched(t)
	b.begin(t, "fail")
	e := b.event(t, "failed", func(e *wire.WorkerEvent) bool { return e.Failed != nil })
	require.Equal(t, &wire.Failure{
		Kind: wire.UserFailure, Message: "no such column", TaskManager: "tm", ExitCode: -1, LastLines: []string{"about to fail"},
	}, e.Failed)
	require.Nil(t, b.ended(t), "a worker that has reported Failed must have no failure in Ended")
	require.Equal(t, "about to fail\n", b.text())
}

func TestCancel(t *testing.T) {
	b := launched(t)
	b.deploy(t, "obey")
	b.ready(t)
	b.command(t, wire.WorkerCommand{Cancel: &wire.Cancel{Reason: "enough"}})
	e := b.event(t, "failed", func(e *wire.WorkerEvent) bool { return e.Failed != nil })
	require.Equal(t, "cancelled: enough", e.Failed.Message)
	require.Nil(t, b.ended(t))
}

func TestIgnores(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]wire.WorkerCommand{
		"ignore-cancel": {Cancel: &wire.Cancel{}},
		"ignore-exit":   {Exit: &wire.Exit{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := manage(t, newFakeJobManager(t), func(c *Config) { c.Grace = 300 * time.Millisecond })
			b.deploy(t, name)
			b.ready(t)
			b.command(t, command)
			require.Nil(t, b.ended(t))
		})
	}
}

func TestGarbageOutput(t *testing.T) {
	b := launched(t)
	b.deploy(t, "garbage-out")
	b.ready(t)
	b.command(t, wire.WorkerCommand{Exit: &wire.Exit{}})
	require.Nil(t, b.ended(t))
	require.Equal(t, "\x00\xff\x1b[2J garbage \xfe\r\n\n", b.text(), "the output must be delivered as it was written")
}

// TestFlood requires that a worker that writes 7 MB to its output does not wait for the job
// manager, which reads nothing.
func TestFlood(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	jm.readGate = make(chan struct{})
	b := manage(t, jm, nil)
	b.deploy(t, "flood")
	b.ready(t)
	b.command(t, wire.WorkerCommand{Start: &wire.Start{}})
	// The event Finished waits until earlier log lines are delivered, but only for a limited
	// time.
	b.event(t, "finished", func(e *wire.WorkerEvent) bool { return e.Finished != nil })
	close(jm.readGate)
	b.command(t, wire.WorkerCommand{Exit: &wire.Exit{}})
	require.Nil(t, b.ended(t))
	require.Less(t, len(b.text()), 2<<20)
}

// TestFloodIsCounted requires that, if a worker writes output faster than the job manager reads
// it, the log says how much output was dropped.
func TestFloodIsCounted(t *testing.T) {
	b := launched(t)
	b.begin(t, "flood")
	b.event(t, "finished", func(e *wire.WorkerEvent) bool { return e.Finished != nil })
	b.command(t, wire.WorkerCommand{Exit: &wire.Exit{}})
	require.Nil(t, b.ended(t))
	lines, dropped := 0, 0
	for line := range strings.Lines(b.text()) {
		var n, bytes int
		if _, err := fmt.Sscanf(line, "(%d lines, %d bytes, left out here", &n, &bytes); err == nil {
			dropped += n
		} else {
			lines++
		}
	}
	require.Equal(t, 20_002, lines+dropped)
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// TestChild requires that a worker ends although it leaves behind a child process that has the
// worker's pipes open.
func TestChild(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"group", "session"} {
		t.Run(how, func(t *testing.T) {
			b := launched(t)
			b.begin(t, "fork "+how)
			f := b.ended(t)
			require.NotNil(t, f)
			require.Contains(t, f.Message, "with code 0")
			require.Len(t, f.LastLines, 1)
			pid, err := strconv.Atoi(strings.TrimPrefix(f.LastLines[0], "child "))
			require.NoError(t, err)
			if how == "session" { // the child left the process group, so it is not killed with the group
				require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
			}
			require.Eventually(t, func() bool { return !alive(pid) }, enough, 5*time.Millisecond)
		})
	}
}

func TestProgressIsThrottled(t *testing.T) {
	b := launched(t)
	begin := time.Now()
	b.begin(t, "progress")
	b.event(t, "finished", func(e *wire.WorkerEvent) bool { return e.Finished != nil })
	passed := time.Since(begin)
	b.command(t, wire.WorkerCommand{Exit: &wire.Exit{}})
	require.Nil(t, b.ended(t))
	var rows []int64
	for _, h := range b.events() {
		if h.event != nil && h.event.Progress != nil {
			rows = append(rows, h.event.Progress.Vertices[0].Rows)
		}
	}
	require.NotEmpty(t, rows)
	require.IsIncreasing(t, rows)
	require.EqualValues(t, 5000, rows[len(rows)-1], "the last progress must be reported before Finished")
	require.LessOrEqual(t, len(rows), int(passed/progressEvery)+2)
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	b := manage(t, newFakeJobManager(t), func(c *Config) {
		c.Environ = append(c.Environ, "HOME=/h", "LC_ALL=C", "SUPERSTEP_TOKEN=secret", "AWS_SECRET=secret", "EXTRA=1", "GOMAXPROCS=7")
		c.PassEnv = []string{"EXTRA", "SUPERSTEP_TOKEN"}
	})
	b.deploy(t, "say environ")
	b.ready(t)
	b.command(t, wire.WorkerCommand{Exit: &wire.Exit{}})
	require.Nil(t, b.ended(t))
	text := b.text()
	require.NotContains(t, text, "secret")
	for _, line := range []string{"HOME=/h", "LC_ALL=C", "EXTRA=1", "GOMAXPROCS=2", fmt.Sprintf("GOMEMLIMIT=%d", 164<<20), fmt.Sprintf("%s=%d", wire.WorkerEnv, wire.Version), "stdin: EOF"} {
		require.Contains(t, "\n"+text, "\n"+line+"\n")
	}
	require.Contains(t, text, "dir "+filepath.Join(b.dir, "workers", "a-job-1-0-"))
	require.Contains(t, text, "procs 2")
}

// TestProcessorsWithoutSlots requires that a worker without slots has as many processors as it holds slots for the
// next attempt, and at least one.
func TestProcessorsWithoutSlots(t *testing.T) {
	t.Parallel()
	for holds, procs := range map[int]int{0: 1, 3: 3} {
		b := manage(t, newFakeJobManager(t), func(*Config) {})
		d := deployment("say environ")
		d.Slots, d.Holds = []wire.SlotRange{{Lo: 4, Hi: 4}}, holds
		b.say(t, &wire.ToTaskManager{Deploy: d})
		b.ready(t)
		b.command(t, wire.WorkerCommand{Exit: &wire.Exit{}})
		require.Nil(t, b.ended(t))
		require.Contains(t, "\n"+b.text(), fmt.Sprintf("\nGOMAXPROCS=%d\n", procs))
	}
}

func TestDeployment(t *testing.T) {
	t.Parallel()
	b := manage(t, newFakeJobManager(t), func(c *Config) { c.Host, c.Listen, c.Ports = "here", "0.0.0.0", wire.Ports{First: 6200, Last: 6299} })
	b.deploy(t, "say deployment")
	b.ready(t)
	b.command(t, wire.WorkerCommand{Exit: &wire.Exit{}})
	require.Nil(t, b.ended(t))
	text := b.text()
	require.Contains(t, text, "Listen:0.0.0.0 Advertise:here Ports:6200-6299")
	require.Contains(t, text, "TaskManager:tm")
	require.Contains(t, text, "WorkDir:"+filepath.Join(b.dir, "workers", "a-job-1-0-"))
}

func TestResolve(t *testing.T) {
	b := launched(t)
	d := deployment("resolve")
	d.Mode = wire.ResolveMode
	b.say(t, &wire.ToTaskManager{Deploy: d})
	e := b.event(t, "resolved", func(e *wire.WorkerEvent) bool { return e.Resolved != nil })
	require.Equal(t, "graph", string(e.Resolved.Graph))
	require.Nil(t, b.ended(t))
}
