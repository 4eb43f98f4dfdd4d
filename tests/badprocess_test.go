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

// Faults of whole processes: the program badjobs fails in ways that end it. The tests check its
// exit code, its messages and its directory.

// badProcess is the directory of one run.
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

// command makes the program's command. The small memory budget makes the exchange spill, so
// that there are temporary files that could be left behind.
func (p badProcess) command(ctx context.Context, args ...string) *proctest.Cmd {
	common := []string{"--output", p.output(), "--spill-dir", p.spill, "--memory", "1MiB", "--shards", "64", "--parallelism", "3", "--progress", "off"}
	return proctest.CommandContext(ctx, p.path, programs.With(common, args...)...)
}

// run runs the program to its end.
func (p badProcess) run(t *testing.T, args ...string) programs.Outcome {
	t.Helper()
	ctx, cancel := programs.Deadline(t)
	defer cancel()
	cmd := p.command(ctx, args...)
	return programs.Await(t, ctx, cmd, cmd.Run)
}

// signalled runs the program and sends it a signal once it is ready, then the other signals
// until it ends. It returns how the program ended. meanwhile is called before the first signal.
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
		require.NoError(t, err, "the program ended too early")
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

// resendSignals sends signals again and again, because signals soon after the first one count as
// the same. It stops when the returned function is called.
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
				_ = p.Signal(s) // it may have ended
			}
		}
	}()
	return func() {
		close(stopped)
		<-done
	}
}

// requireNothingLeft requires that there is neither an output nor a temporary file.
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
			require.NotEqual(t, []string{"spill"}, programs.Listing(t, p.dir), "the run has begun to write")
		}, s)
		require.Equal(t, 1, got.Code, got.Stderr)
		require.Contains(t, got.Stderr, "cancelled")
		p.requireNothingLeft(t)
	}
}

// TestInterruptOfAFunctionThatIgnoresIt: the process waits ten seconds for the function, then
// ends all the same, and names the function.
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

// TestSecondInterruptEndsTheProcess: a second interrupt ends the process at once.
func TestSecondInterruptEndsTheProcess(t *testing.T) {
	p := newBadProcess(t)
	got := p.signalled(t, "ignore", func() {}, syscall.SIGINT, syscall.SIGTERM)
	require.Equal(t, 1, got.Code, got.Stderr)
	require.NotContains(t, got.Stderr, "MapPartition", "it did not wait until it gave the function up")
	require.NoFileExists(t, p.output())
}

// TestNextRunSweepsAfterAKill: a process that is killed cannot clean up, so the
// next one does.
func TestNextRunSweepsAfterAKill(t *testing.T) {
	p := newBadProcess(t)
	got := p.signalled(t, "watch", func() {}, syscall.SIGKILL)
	require.Equal(t, -1, got.Code)
	left := programs.Listing(t, p.dir)
	require.NotContains(t, left, "out.csv", "half an output is visible")
	require.True(t, strings.Contains(strings.Join(left, "\n"), "spill/superstep-"), "the killed run had spilled: %v", left)

	after := p.run(t)
	require.Zero(t, after.Code, after.Stderr)
	require.Equal(t, []string{"out.csv", "spill"}, programs.Listing(t, p.dir))
}
