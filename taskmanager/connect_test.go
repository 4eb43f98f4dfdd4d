//go:build unix

package taskmanager

import (
	"context"
	"crypto/tls"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/internal/wire"
)

// pid waits until there is a process whose working directory is the directory of a worker, and
// returns its PID.
func (b *site) pid(t *testing.T) int {
	t.Helper()
	found := 0
	require.Eventually(t, func() bool {
		entries, err := os.ReadDir("/proc")
		require.NoError(t, err)
		for _, e := range entries {
			pid, err := strconv.Atoi(e.Name())
			if err != nil {
				continue
			}
			if dir, err := os.Readlink(filepath.Join("/proc", e.Name(), "cwd")); err == nil && strings.HasPrefix(dir, filepath.Join(b.dir, "workers")+"/") {
				found = pid
			}
		}
		return found != 0
	}, enough, time.Millisecond)
	return found
}

func requireGone(t *testing.T, pid int, within time.Duration) {
	t.Helper()
	require.Eventually(t, func() bool { return !alive(pid) }, within, time.Millisecond, "process %d must have ended", pid)
}

func TestRegistration(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	b := manage(t, jm, nil)
	r := jm.registers[0]
	require.Equal(t, wire.Version, r.Version)
	require.Equal(t, wire.Build(), r.Build)
	require.Equal(t, "tm", r.Name)
	require.Equal(t, "127.0.0.1", r.Host)
	require.Equal(t, os.Getpid(), r.PID)
	require.Equal(t, 4, r.Slots)
	require.EqualValues(t, 400<<20, r.Memory)
	require.Empty(t, r.Running)
	id, err := os.ReadFile(filepath.Join(b.dir, "id"))
	require.NoError(t, err)
	require.Equal(t, r.ID+"\n", string(id))

	// After the task manager has left, it must register again with the same identity.
	b.cancel()
	require.NoError(t, <-b.over)
	jm.await(t, "farewell", func() bool { return jm.left != nil })
	jm.change(func() { jm.stream = nil })
	manage(t, jm, func(c *Config) { c.Dir = b.dir })
	require.Equal(t, r.ID, jm.registers[1].ID)
	require.NotEqual(t, r.Incarnation, jm.registers[1].Incarnation)
}

// TestStop stops a task manager with workers. The workers must end before the task manager
// sends its Leave.
func TestStop(t *testing.T) {
	b := launched(t)
	b.deploy(t, "obey")
	b.ready(t)
	pid := b.pid(t)
	b.cancel()
	require.NoError(t, <-b.over)
	require.False(t, alive(pid))
	e := b.event(t, "ended", func(e *wire.WorkerEvent) bool { return e.Ended != nil })
	require.Equal(t, "the task manager was stopped", e.Ended.Failure.Message)
	b.await(t, "farewell", func() bool { return b.left != nil })
}

func TestRefused(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	jm.refuse = &wire.Refused{Reason: "upgrade yourself", Final: true}
	b := manage(t, jm, nil)
	err := <-b.over
	var refused *RefusedError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "the job manager at localhost:6123 refuses this task manager: upgrade yourself", err.Error())
}

func TestRefusedForNow(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	jm.refuse = &wire.Refused{Reason: "another one has your identity"}
	manage(t, jm, nil)
	jm.await(t, "more tries", func() bool { return len(jm.registers) >= 3 })
	jm.change(func() { jm.refuse = nil })
	jm.await(t, "registration", func() bool { return jm.stream != nil })
}

// TestTLSToPlaintext requires that the log says what to do if a task manager uses TLS and the
// job manager does not.
func TestTLSToPlaintext(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	jm.refuse = &wire.Refused{} // so that manage does not wait for a registration
	said := make(lines, 16)
	manage(t, jm, func(c *Config) {
		c.DialOptions = append(c.DialOptions, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS13})))
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: said, Level: hclog.Warn})
	})
	require.Contains(t, <-said, "the job manager does not speak TLS: drop --tls-ca")
}

// lines receives log lines; lines that do not fit are dropped.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	select {
	case l <- string(p):
	default:
	}
	return len(p), nil
}

// TestWrongToken requires that Run fails if the job manager rejects the token before it reads
// any message of the task manager.
func TestWrongToken(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	jm.server.Stop()
	guard := grpc.StreamInterceptor(func(any, grpc.ServerStream, *grpc.StreamServerInfo, grpc.StreamHandler) error {
		return wire.Error(codes.Unauthenticated, "the token is wrong: give the one of the job manager")
	})
	jm.start(guard)
	jm.refuse = &wire.Refused{} // so that manage does not wait for a registration
	b := manage(t, jm, nil)
	require.EqualError(t, <-b.over, "the job manager at localhost:6123 refuses this task manager: the token is wrong: give the one of the job manager")
}

func TestTwoInOneDirectory(t *testing.T) {
	t.Parallel()
	b := manage(t, newFakeJobManager(t), nil)
	err := Run(t.Context(), Config{JobManager: "localhost:6123", Dir: b.dir})
	require.ErrorContains(t, err, b.dir)
	require.ErrorContains(t, err, "another task manager uses it (process "+strconv.Itoa(os.Getpid())+")")
}

// TestReconnect breaks the connection while a worker runs. The worker must continue, and events
// that may have been lost must be sent again.
func TestReconnect(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	jm.withoutAcks = true // so that all events must be sent again
	b := manage(t, jm, nil)
	b.begin(t, "obey")
	b.event(t, "finished", func(e *wire.WorkerEvent) bool { return e.Finished != nil })
	jm.server.Stop() // must precede the clearing of heard, because messages may arrive until Stop returns
	jm.change(func() { jm.heard, jm.withoutAcks = nil, false })
	jm.start()
	jm.await(t, "another registration", func() bool { return len(jm.registers) == 2 })
	require.Equal(t, []wire.WorkerRef{ref}, jm.registers[1].Running)
	require.Equal(t, jm.registers[0].Incarnation, jm.registers[1].Incarnation)
	b.event(t, "finished again", func(e *wire.WorkerEvent) bool { return e.Finished != nil })
	// The first event must be Ready. Deliveries arrive on a separate stream, so a delivery may
	// arrive before the first event.
	all := jm.events()
	first := slices.IndexFunc(all, func(h heard) bool { return h.event != nil })
	require.NotNil(t, all[first].event.Ready, "the events must be sent again in order, beginning with Ready")
	b.command(t, wire.WorkerCommand{Start: &wire.Start{}}) // a repeated command has no effect
	b.command(t, wire.WorkerCommand{Exit: &wire.Exit{}})
	require.Nil(t, b.ended(t))
}

// TestAcknowledged breaks the connection after all events were acknowledged, and requires that
// no event is sent again.
func TestAcknowledged(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	b := manage(t, jm, nil)
	b.deploy(t, "obey")
	b.ready(t)
	jm.awaitHeartbeats(t, 4)
	jm.server.Stop()
	jm.change(func() { jm.heard = nil })
	jm.start()
	jm.await(t, "another registration", func() bool { return len(jm.registers) == 2 })
	b.command(t, wire.WorkerCommand{Exit: &wire.Exit{}})
	require.Nil(t, b.ended(t))
	require.Len(t, jm.events(), 1)
}

// TestJobManagerGone requires that the worker is killed if the job manager ends and the lease
// lapses, and that the task manager accepts work again when the job manager has been started
// again.
func TestJobManagerGone(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	jm.lease = 500 * time.Millisecond
	b := manage(t, jm, nil)
	b.deploy(t, "obey")
	b.ready(t)
	pid := b.pid(t)
	jm.server.Stop()
	requireGone(t, pid, enough)
	jm.change(func() { jm.heard, jm.cluster = nil, "second" })
	jm.start()
	jm.await(t, "another registration", func() bool { return len(jm.registers) == 2 })
	e := b.event(t, "ended", func(e *wire.WorkerEvent) bool { return e.Ended != nil })
	require.Equal(t, wire.UnheardFailure, e.Ended.Failure.Kind)
	require.Equal(t, "no message of the job manager came for 500ms", e.Ended.Failure.Message)
	// The task manager must accept work again.
	jm.change(func() { jm.heard = nil })
	b.deploy(t, "obey")
	b.ready(t)
}

// TestJobManagerWithoutAcknowledgements requires that the lease lapses if the job manager keeps
// its connection open but acknowledges nothing, as if its process were stopped.
func TestJobManagerWithoutAcknowledgements(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	jm.lease = 500 * time.Millisecond
	b := manage(t, jm, nil)
	b.deploy(t, "obey")
	b.ready(t)
	pid := b.pid(t)
	jm.change(func() { jm.withoutAcks = true })
	requireGone(t, pid, enough)
	jm.change(func() { jm.withoutAcks = false })
	jm.await(t, "another registration", func() bool { return len(jm.registers) >= 2 })
}

// TestWhyTheConnectionBroke requires that the log says why an established connection broke,
// both if the job manager ended and if its process was stopped.
func TestWhyTheConnectionBroke(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	jm.lease = 500 * time.Millisecond
	said := make(lines, 64)
	manage(t, jm, func(c *Config) {
		c.Logger = hclog.New(&hclog.LoggerOptions{Output: said, Level: hclog.Warn})
	})
	jm.change(func() { jm.withoutAcks = true })
	require.Contains(t, <-said, "no message of the job manager came for 500ms: killing the workers")
	line := <-said
	require.Contains(t, line, "no connection to the job manager, trying again: address=localhost:6123")
	require.Contains(t, line, `error="no message of the job manager came for 500ms"`)

	jm.change(func() { jm.withoutAcks = false })
	jm.await(t, "another registration", func() bool { return len(jm.registers) >= 2 && jm.stream != nil })
	jm.awaitHeartbeats(t, 2)
	jm.server.Stop()
	line = <-said
	require.Contains(t, line, "no connection to the job manager, trying again")
	require.Regexp(t, `error="[^"]*(EOF|closed|ended|reset)[^"]*"`, line)
	require.NotContains(t, line, "cancel", "the reason must be the end of the job manager, not a cancellation")
	jm.change(func() {
		require.Empty(t, jm.registers[0].Broke)
		require.Equal(t, "no message of the job manager came for 500ms", jm.registers[1].Broke, "the next registration must say why the previous connection broke")
	})
}

// TestAnotherJobManager restarts the job manager before the lease lapses, after it has
// acknowledged everything that a worker reported. The worker must go on, and its reports must be
// repeated. It must be killed only if the job manager says so.
func TestAnotherJobManager(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	b := manage(t, jm, nil)
	b.deploy(t, "obey")
	b.ready(t)
	pid := b.pid(t)
	jm.awaitHeartbeats(t, 4)
	jm.server.Stop()
	jm.change(func() { jm.cluster, jm.heard = "second", nil })
	jm.start()
	require.NotNil(t, b.event(t, "ready", func(e *wire.WorkerEvent) bool { return e.Ready != nil }))
	require.Equal(t, []wire.WorkerRef{ref}, jm.registers[1].Running)
	require.NoError(t, syscall.Kill(pid, 0), "the worker must go on")
	b.command(t, wire.WorkerCommand{Kill: &wire.Kill{}})
	requireGone(t, pid, enough)
	require.Nil(t, b.ended(t))
	require.Len(t, jm.events(), 2)
}

func TestUnknownWorker(t *testing.T) {
	b := launched(t)
	b.command(t, wire.WorkerCommand{Kill: &wire.Kill{}})
	require.Nil(t, b.ended(t))
	b.change(func() { b.heard = nil })
	b.command(t, wire.WorkerCommand{Start: &wire.Start{}})
	require.Equal(t, &wire.Failure{
		Kind: wire.LostFailure, Message: "the task manager does not have the worker any more", TaskManager: "tm", ExitCode: -1,
	}, b.ended(t))
}

func TestWrongDeployment(t *testing.T) {
	b := launched(t)
	d := deployment("obey")
	d.Slots = nil
	b.say(t, &wire.ToTaskManager{Deploy: d})
	f := b.ended(t)
	require.Equal(t, wire.ClusterFailure, f.Kind)
	require.Contains(t, f.Message, "number 0 of 0")
}

// TestKilledTaskManager kills a task manager that runs in a separate process. Its worker must
// end at once, although the worker ignores EOF on its pipe.
func TestKilledTaskManager(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	jm.server.Stop()
	jm.startOn(t)
	dir := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	tm := proctest.Command(self, jm.address, dir)
	tm.Env = append(os.Environ(), roleEnv+"=taskmanager")
	tm.Stdout, tm.Stderr = os.Stdout, os.Stderr
	require.NoError(t, tm.Start())
	t.Cleanup(func() {
		_ = tm.Process.Kill()
		_ = tm.Wait()
	})
	jm.await(t, "registration", func() bool { return jm.stream != nil })
	b := &site{fakeJobManager: jm, dir: dir}
	b.deploy(t, "never-speaks") // this script ignores EOF on its pipe
	pid := b.pid(t)
	require.NoError(t, tm.Process.Kill())
	requireGone(t, pid, enough)
}

// TestSlowJobManager requires that a worker is not killed if its rows wait in the pipe for
// longer than Config.Silence.
func TestSlowJobManager(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	jm.readGate = make(chan struct{})
	b := manage(t, jm, func(c *Config) { c.Silence = 300 * time.Millisecond })
	const pieces = 200 // 6 MB
	b.begin(t, "obey "+strconv.Itoa(pieces))
	jm.awaitHeartbeats(t, 50) // 50 heartbeats take about a second
	for _, h := range jm.events() {
		if h.event != nil && h.event.Progress != nil {
			require.Less(t, h.event.Progress.Vertices[0].Rows, int64(pieces/2), "the worker must wait for the job manager: it may not have sent half of its rows")
		}
	}
	close(jm.readGate)
	b.event(t, "finished", func(e *wire.WorkerEvent) bool { return e.Finished != nil })
	collected := 0
	for _, h := range jm.events() {
		if h.piece != nil && h.piece.Collected != nil {
			collected++
		}
	}
	require.Equal(t, pieces, collected)
}

// TestRowsLost breaks a connection while rows are being sent. The worker must fail, because
// nobody knows which rows arrived.
func TestRowsLost(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	jm.readGate = make(chan struct{})
	b := manage(t, jm, nil)
	b.begin(t, "obey 200")
	jm.await(t, "rows on their way", func() bool { return jm.held > 0 })
	jm.server.Stop()
	jm.change(func() { jm.readGate = nil })
	jm.start()
	e := b.event(t, "ended", func(e *wire.WorkerEvent) bool { return e.Ended != nil })
	require.Equal(t, wire.LostFailure, e.Ended.Failure.Kind)
	require.Regexp(t, `^rows or text for the client could not be brought to the job manager: the connection to it broke while they were on their way \(.+\), and nobody knows which of them arrived; it was back \d+\.\ds later$`, e.Ended.Failure.Message)
}

// TestRowsLostForGood requires that the message says whether a broken connection stayed broken,
// and that for other errors it does not say that the connection broke.
func TestRowsLostForGood(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	jm.server.Stop()
	cc, err := grpc.NewClient("passthrough:///boss", append(wire.DialOptions(), grpc.WithContextDialer(jm.dial), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	require.NoError(t, err)
	defer cc.Close()
	d := newDeliverer(wire.WorkerRef{}, wire.NewClient(cc), nil, 1)
	d.patience = time.Millisecond
	require.ErrorContains(t, d.lost(t.Context(), wire.Error(codes.Unavailable, "EOF")), "the connection to it broke while they were on their way (EOF), and nobody knows which of them arrived; it was not back within 1ms")
	require.EqualError(t, d.lost(t.Context(), wire.Error(codes.ResourceExhausted, "its disk is full")), "rows or text for the client could not be brought to the job manager: its disk is full")
}

// TestCancelWhileSlow cancels a worker whose rows wait for the job manager. It requires that
// the worker gets the command and that the rows are dropped.
func TestCancelWhileSlow(t *testing.T) {
	t.Parallel()
	jm := newFakeJobManager(t)
	jm.readGate = make(chan struct{})
	b := manage(t, jm, nil)
	b.begin(t, "obey 200")
	b.event(t, "progress", func(e *wire.WorkerEvent) bool { return e.Progress != nil })
	b.command(t, wire.WorkerCommand{Cancel: &wire.Cancel{Reason: "enough"}})
	e := b.event(t, "failed", func(e *wire.WorkerEvent) bool { return e.Failed != nil })
	require.Equal(t, "cancelled: enough", e.Failed.Message)
	close(jm.readGate)
	require.Nil(t, b.ended(t))
}

func TestConfig(t *testing.T) {
	for message, c := range map[string]Config{
		"host:port":              {JobManager: "localhost", Dir: "d"},
		"needs a work directory": {JobManager: "localhost:1"},
		"-1 slots":               {JobManager: "localhost:1", Dir: "d", Slots: -1},
		"cannot be negative":     {JobManager: "localhost:1", Dir: "d", Memory: -1},
		"lease":                  {JobManager: "localhost:1", Dir: "d", Lease: -1},
	} {
		require.ErrorContains(t, Run(context.Background(), c), message)
	}
	c, err := Config{JobManager: "[::1]:6123", Dir: t.TempDir()}.complete()
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1", c.Host)
	require.Positive(t, c.Slots)
	require.Positive(t, c.Memory)
}
