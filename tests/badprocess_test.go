//go:build unix && !race

package tests

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
	"github.com/superstep-ml/superstep/tests/internal/programs"
)

// This file tests faults of whole processes. The program badjobs fails in ways that end it. The
// tests check its exit code, its messages and the files in its directory.

// badProcess has the executable and the directories of one run of badjobs.
type badProcess struct {
	path       string
	dir, spill string
}

func newBadProcess(t *testing.T) badProcess {
	t.Helper()
	p := badProcess{path: programs.Build(t, "./tests/badjobs"), dir: t.TempDir()}
	p.spill = filepath.Join(p.dir, "spill")
	require.NoError(t, os.Mkdir(p.spill, 0o755))
	return p
}

func (p badProcess) output() string { return filepath.Join(p.dir, "out.csv") }

// command returns the command that runs the program. The memory budget is so small that the
// exchange spills. So there are temporary files, which the program could leave behind.
func (p badProcess) command(ctx context.Context, args ...string) *proctest.Cmd {
	common := []string{"--output", p.output(), "--spill-dir", p.spill, "--memory", "1MiB", "--shards", "64", "--parallelism", "3", "--progress", "off"}
	return proctest.CommandContext(ctx, p.path, programs.With(common, args...)...)
}

// run runs the program and waits until it has ended.
func (p badProcess) run(t *testing.T, args ...string) programs.Outcome {
	t.Helper()
	ctx, cancel := programs.Deadline(t)
	defer cancel()
	cmd := p.command(ctx, args...)
	return programs.Await(t, ctx, cmd, cmd.Run)
}

// signalled runs the program. When the program is ready, signalled calls meanwhile and sends
// the first signal. Then it sends the other signals repeatedly until the program ends. It
// returns how the program ended.
func (p badProcess) signalled(t *testing.T, fault string, meanwhile func(), signals ...os.Signal) programs.Outcome {
	t.Helper()
	ctx, cancel := programs.Deadline(t)
	defer cancel()
	cmd := p.command(ctx, "--fault", fault)
	stderr, write, err := os.Pipe()
	require.NoError(t, err)
	defer stderr.Close()
	cmd.Stderr = write
	require.NoError(t, cmd.Start())
	require.NoError(t, write.Close())
	lines := bufio.NewReader(stderr)
	for {
		line, err := lines.ReadString('\n')
		require.NoError(t, err, "the program must print ready before it ends")
		if line == "ready\n" {
			break
		}
	}
	meanwhile()
	require.NoError(t, cmd.Process.Signal(signals[0]))
	defer resendSignals(cmd.Process, signals[1:])()
	var said bytes.Buffer
	got := programs.Await(t, ctx, cmd, func() error {
		_, err := said.ReadFrom(lines)
		require.NoError(t, err)
		return cmd.Wait()
	})
	got.Stderr = said.String()
	return got
}

// resendSignals sends signals repeatedly until the returned function is called. Sending them
// once is not enough, because the program ignores signals that arrive soon after the first
// signal.
func resendSignals(p *os.Process, signals []os.Signal) (stop func()) {
	stopped, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		again := time.NewTicker(50 * time.Millisecond)
		defer again.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-again.C:
			}
			for _, s := range signals {
				_ = p.Signal(s) // fails if the process has ended
			}
		}
	}()
	return func() {
		close(stopped)
		<-done
	}
}

// requireNothingLeft requires that the program has left neither an output nor a temporary file.
func (p badProcess) requireNothingLeft(t *testing.T) {
	t.Helper()
	require.Equal(t, []string{"spill"}, programs.Listing(t, p.dir))
}

func TestProcessSucceeds(t *testing.T) {
	p := newBadProcess(t)
	got := p.run(t)
	require.Zero(t, got.Code, got.Stderr)
	require.Equal(t, []string{"out.csv", "spill"}, programs.Listing(t, p.dir))
}

func TestProcessFails(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
		code int
		says []string
	}{
		{"panic", []string{"--fault", "panic"}, 1, []string{"the function panics", "MapPartition", "subtask", "shard", "main.go:"}},
		{"error", []string{"--fault", "error"}, 1, []string{"the function fails", "MapPartition", "subtask", "shard", "main.go:"}},
		{"disk full while writing", []string{"--file-limit", "4000", "--memory", "1GiB"}, 1, []string{"cannot write", "out.csv", "file too large", "WriteCSV", "main.go:"}},
		{"disk full while spilling", []string{"--file-limit", "4000"}, 1, []string{"file too large", "main.go:"}},
		{"wrong usage", []string{"--fault", "sleep"}, 2, []string{"--fault", "sleep"}},
		{"more subtasks than shards", []string{"--parallelism", "65"}, 2, []string{"--parallelism is 65", "64 shards"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newBadProcess(t)
			got := p.run(t, c.args...)
			require.Equal(t, c.code, got.Code, got.Stderr)
			require.Empty(t, got.Stdout)
			for _, words := range c.says {
				require.Contains(t, got.Stderr, words)
			}
			p.requireNothingLeft(t)
		})
	}
}

func TestInterruptCancels(t *testing.T) {
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p := newBadProcess(t)
		got := p.signalled(t, "watch", func() {
			require.NotEqual(t, []string{"spill"}, programs.Listing(t, p.dir), "the run must have begun to write, or the test proves nothing")
		}, s)
		require.Equal(t, 1, got.Code, got.Stderr)
		require.Contains(t, got.Stderr, "cancelled")
		p.requireNothingLeft(t)
	}
}

// TestInterruptOfAFunctionThatIgnoresIt requires that after an interrupt the process waits ten
// seconds for a function that does not return, then ends anyway, and names the function.
func TestInterruptOfAFunctionThatIgnoresIt(t *testing.T) {
	t.Parallel()
	p := newBadProcess(t)
	began := time.Now()
	got := p.signalled(t, "ignore", func() {}, syscall.SIGINT)
	require.Equal(t, 1, got.Code, got.Stderr)
	require.GreaterOrEqual(t, time.Since(began), 10*time.Second)
	require.Contains(t, got.Stderr, "MapPartition")
	require.Contains(t, got.Stderr, "main.go:")
	p.requireNothingLeft(t)
}

// TestSecondInterruptEndsTheProcess requires that a second interrupt ends the process at once.
func TestSecondInterruptEndsTheProcess(t *testing.T) {
	p := newBadProcess(t)
	got := p.signalled(t, "ignore", func() {}, syscall.SIGINT, syscall.SIGTERM)
	require.Equal(t, 1, got.Code, got.Stderr)
	require.NotContains(t, got.Stderr, "MapPartition", "the process must not wait for the function")
	require.NoFileExists(t, p.output())
}

// TestNextRunSweepsAfterAKill requires that the next run removes the temporary files of a
// process that was killed and could not remove them itself.
func TestNextRunSweepsAfterAKill(t *testing.T) {
	p := newBadProcess(t)
	got := p.signalled(t, "watch", func() {}, syscall.SIGKILL)
	require.Equal(t, -1, got.Code)
	left := programs.Listing(t, p.dir)
	require.NotContains(t, left, "out.csv", "an incomplete output must not be visible")
	require.True(t, strings.Contains(strings.Join(left, "\n"), "spill/superstep-"), "the killed run must have temporary files, or the test proves nothing: %v", left)

	after := p.run(t)
	require.Zero(t, after.Code, after.Stderr)
	require.Equal(t, []string{"out.csv", "spill"}, programs.Listing(t, p.dir))
}
