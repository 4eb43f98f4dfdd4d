//go:build unix

package taskmanager

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// script writes a shell script to a file and leaves the file open for writing.
func script(t *testing.T, text string) (path string, open *os.File) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "script")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o700)
	require.NoError(t, err)
	_, err = f.WriteString("#!/bin/sh\n" + text)
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	return path, f
}

// launchScript starts a script with a launcher, without a task manager.
func launchScript(t *testing.T, l *launcher, path string) (Process, error) {
	t.Helper()
	ours, its, err := makePipes()
	require.NoError(t, err)
	t.Cleanup(ours.close)
	defer its.close()
	its.Executable, its.Dir = path, t.TempDir()
	return l.Launch(its)
}

// wait waits until a process has ended, up to a time limit, and returns how it ended.
func wait(t *testing.T, p Process) Exit {
	t.Helper()
	over := make(chan struct{})
	var exit Exit
	var err error
	go func() {
		defer close(over)
		exit, err = p.Wait()
	}()
	select {
	case <-over:
	case <-time.After(enough):
		require.NoError(t, p.Kill())
		<-over
		require.FailNow(t, "the process must end within the time limit")
	}
	require.NoError(t, err)
	return exit
}

func TestLauncher(t *testing.T) {
	l := newLauncher()
	defer l.Close()
	var all sync.WaitGroup
	for _, test := range []struct {
		text string
		exit Exit
	}{
		{"exit 0", Exit{}},
		{"exit 5", Exit{Code: 5}},
		{"kill -9 $$", Exit{Code: -1, Signal: "killed"}},
		{"kill -TERM $$", Exit{Code: -1, Signal: "terminated"}},
	} {
		path, f := script(t, test.text)
		require.NoError(t, f.Close())
		p, err := launchScript(t, l, path)
		require.NoError(t, err)
		all.Go(func() {
			exit, err := p.Wait()
			if err != nil || exit != test.exit {
				t.Errorf("%s: %+v, %v", test.text, exit, err)
			}
			if err := p.Kill(); err != nil {
				t.Errorf("%s: killed again: %v", test.text, err)
			}
		})
	}
	all.Wait()
}

// TestBusyExecutable requires that an executable can be started that is open for writing for a
// short time. This happens in production if another process is forked while the file is being
// written.
func TestBusyExecutable(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // on other systems such an executable starts without an error
	}
	l := newLauncher()
	defer l.Close()
	path, f := script(t, "exit 0")
	closed := time.AfterFunc(50*time.Millisecond, func() { f.Close() })
	defer closed.Stop()
	p, err := launchScript(t, l, path)
	require.NoError(t, err)
	require.Equal(t, Exit{}, wait(t, p))
}

// TestClosedLauncher closes a launcher whose process is still running. On Linux the process
// must be killed.
func TestClosedLauncher(t *testing.T) {
	for range 10 { // so that different threads are tried
		testClosedLauncher(t)
	}
}

func testClosedLauncher(t *testing.T) {
	t.Helper()
	l := newLauncher()
	path, f := script(t, "exec sleep 1000")
	require.NoError(t, f.Close())
	p, err := launchScript(t, l, path)
	require.NoError(t, err)
	l.Close()
	l.Close()
	if runtime.GOOS != "linux" {
		require.NoError(t, p.Kill())
	}
	require.Equal(t, "killed", wait(t, p).Signal)
	_, err = launchScript(t, l, path)
	require.ErrorIs(t, err, ErrClosed)
}

// broken is a Launcher whose Launch always returns err.
type broken struct{ err error }

func (b broken) Launch(Launch) (Process, error) { return nil, b.err }

func TestNoProcess(t *testing.T) {
	t.Parallel()
	b := manage(t, newFakeJobManager(t), func(c *Config) { c.Launcher = broken{errors.New("no room")} })
	b.deploy(t, "obey")
	f := b.ended(t)
	require.Equal(t, &wire.Failure{Kind: wire.ClusterFailure, Message: "start the worker: no room", TaskManager: "tm", ExitCode: -1}, f)
	require.Empty(t, names(t, filepath.Join(b.dir, "workers")))
}
