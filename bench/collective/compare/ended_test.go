package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/overdue"
	"github.com/superstep-ml/superstep/internal/proctest"
)

// fakePeer acts as a contestant in the way that text says. For "fail", it exits with an error.
// For "stay at ADDRESS" or "hang at ADDRESS", it prints a result, starts a child process, and
// connects to the address until it is terminated; the child does the same. With "hang", both
// processes ignore SIGTERM. If text is anything else, fakePeer prints it.
func fakePeer(text string) {
	word, address, _ := strings.Cut(text, " at ")
	switch word {
	case "fail":
		fmt.Fprintln(os.Stderr, "no such luck")
		os.Exit(3)
	case "stay", "hang":
		fmt.Println(lineOf("half", 5))
		self, err := os.Executable()
		exitOn(err)
		child := exec.Command(self)
		child.Env = append(os.Environ(), fakeVariable+"=child to "+word+" at "+address)
		exitOn(child.Start())
		wait(word, address)
	case "child to stay", "child to hang":
		wait(word, address)
	default:
		fmt.Println(text)
	}
}

// wait connects to an address and reads until the process is terminated. The other end never
// sends anything.
func wait(word, address string) {
	if strings.HasSuffix(word, "hang") {
		signal.Ignore(syscall.SIGTERM)
	}
	c, err := net.Dial("tcp", address)
	exitOn(err)
	_, err = io.Copy(io.Discard, c)
	exitOn(err)
}

func lineOf(config string, us float64) string {
	return fmt.Sprintf(`{"collective":"allreduce","config":%q,"p50_us":%v}`, config, us)
}

// hangingServer accepts the connections of contestants that hang.
type hangingServer struct{ net.Listener }

func newHangingServer(t *testing.T) hangingServer {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	return hangingServer{l}
}

// both waits until a contestant and its child have connected. It returns their connections.
func (h hangingServer) both(t *testing.T) [2]net.Conn {
	defer overdue.Watch("a contestant and its child that hang")()
	var conns [2]net.Conn
	for i := range conns {
		var err error
		conns[i], err = h.Accept()
		require.NoError(t, err)
	}
	return conns
}

// requireGone waits until the processes at the other ends of conns have exited.
func requireGone(t *testing.T, conns [2]net.Conn) {
	defer overdue.Watch("the end of a contestant's process group")()
	for _, c := range conns {
		_, err := c.Read(make([]byte, 1))
		require.Error(t, err)
		require.NoError(t, c.Close())
	}
}

// TestWhoHangsIsGivenUp requires that a contestant that hangs is killed together with its
// process group, and is not run again at any later point of measurement. The other contestants
// must continue.
func TestWhoHangsIsGivenUp(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // Windows has no process groups
	}
	for _, partly := range []bool{false, true} {
		h := newHangingServer(t)
		var asked []string
		k := fake(t, "hangs", false, "hang at "+h.Addr().String(), &asked)
		commands := k.commands
		k.commands = func(q request) [][]string {
			lines := commands(q)
			if partly { // a second command, which must not run
				lines = append(lines, []string{"/does/not/exist"})
			}
			return lines
		}
		c := &compareCommand{Collective: []string{"allreduce"}, Ranks: []int{2}, Bytes: []int{8, 16}, Rounds: 2, Keep: 1, Seconds: 1, Limit: 90 * time.Second, NoIdle: true}
		var progress, out bytes.Buffer
		x := c.comparison([]*contestant{fake(t, "ours", true, lineOf("quick", 10), &asked), k}, &progress)
		x.grace = time.Millisecond
		gone := make(chan [2]net.Conn, 1)
		x.bound = func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			if asked[len(asked)-1] == "hangs " {
				go func() {
					gone <- h.both(t)
					cancel(errTooLong)
				}()
			}
			return ctx, func() { cancel(nil) }
		}
		require.NoError(t, x.run(t.Context(), &out))
		requireGone(t, <-gone)
		require.Equal(t, []string{"ours ", "hangs ", "ours ", "ours ", "ours "}, asked)
		require.Contains(t, progress.String(), "hangs fails: ")
		require.NotContains(t, progress.String(), "/does/not/exist")
		require.Contains(t, out.String(), "| allreduce | 2 | 8 B | 10.0 µs (quick) | 5.00 µs (half), gave up after 90 s |")
		require.Contains(t, out.String(), "| allreduce | 2 | 16 B | 10.0 µs (quick) | gave up after 90 s | – | – |")
	}
}

// commandVariable is an environment variable that makes the test binary act as the command
// compare.
const commandVariable = "SUPERSTEP_BENCH_COMPARE"

// TestSignalsLeaveWhatWasMeasured runs the command as a user would, and sends it a signal after
// Gloo has been measured and while Open MPI hangs. It requires that all results received before
// the signal are printed, and that the processes of Open MPI end.
func TestSignalsLeaveWhatWasMeasured(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // Windows has no such signals
	}
	for _, end := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		h := newHangingServer(t)
		dir := t.TempDir()
		self, err := os.Executable()
		require.NoError(t, err)
		for _, name := range []string{"mpi_bench", "gloo_bench"} {
			require.NoError(t, os.Symlink(self, filepath.Join(dir, name)))
		}
		launcher := filepath.Join(dir, "mpirun")
		script := fmt.Sprintf("#!/bin/sh\n%s='stay at %s' exec %s\n", fakeVariable, h.Addr(), filepath.Join(dir, "mpi_bench"))
		require.NoError(t, os.WriteFile(launcher, []byte(script), 0o700))
		p := proctest.Command(self, "--peers", dir, "--mpirun", launcher, "--only", "Open MPI,Gloo sync",
			"--collective", "allreduce", "--ranks", "2", "--bytes", "64,128", "--rounds", "2", "--no-idle")
		p.Env = append(os.Environ(), commandVariable+"=1", fakeVariable+"="+lineOf("ring", 20))
		var out, problems bytes.Buffer
		p.Stdout, p.Stderr = &out, &problems
		require.NoError(t, p.Start())
		conns := h.both(t)
		require.NoError(t, p.Process.Signal(end))
		require.Error(t, p.Wait())
		requireGone(t, conns)
		require.Equal(t, 1, p.ProcessState.ExitCode(), problems.String())
		require.Contains(t, out.String(), "| allreduce | 2 | 64 B | 20.0 µs (ring) | 5.00 µs (half) | – | – |\n\nNot all was measured: ")
		require.NotContains(t, out.String(), "128 B")
		require.Contains(t, out.String(), end.String())
	}
}

// TestTheDeadlineLeavesWhatWasMeasured requires that the measurements made before the deadline
// are printed, also as JSON.
func TestTheDeadlineLeavesWhatWasMeasured(t *testing.T) {
	h := newHangingServer(t)
	var asked []string
	c := &compareCommand{Collective: []string{"allreduce"}, Ranks: []int{2}, Bytes: []int{8, 16}, Rounds: 2, Keep: 1, JSON: true, NoIdle: true}
	x := c.comparison([]*contestant{fake(t, "quick", false, lineOf("ring", 10), &asked), fake(t, "hangs", false, "stay at "+h.Addr().String(), &asked)}, io.Discard)
	x.bound = context.WithCancel
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := make(chan [2]net.Conn, 1)
	go func() {
		gone <- h.both(t)
		cancel(errDeadline)
	}()
	var out bytes.Buffer
	require.ErrorIs(t, x.run(ctx, &out), errDeadline)
	requireGone(t, <-gone)
	var printed report
	require.NoError(t, json.Unmarshal(out.Bytes(), &printed))
	require.Equal(t, errDeadline.Error(), printed.Ended)
	require.Len(t, printed.Rows, 1)
	require.InDelta(t, 10e-6, printed.Rows[0].Cells[0].P50, 1e-12)
	require.Equal(t, []string{"quick ", "hangs "}, asked)
}
