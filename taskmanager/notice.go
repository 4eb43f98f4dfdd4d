package taskmanager

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/superstep-ml/superstep/taskmanager/core"
)

// Bounds of the nominal waits until the command of a preemption notice is started again after a
// failure. When it has run for the longer of them, the next wait is the shorter.
const (
	firstNotice = time.Second
	lastNotice  = time.Minute
)

// awaitNotice runs the command of a preemption notice until it ends with exit code 0, and returns true
// then. If the command fails, awaitNotice starts it again after a wait. When the context is done, it
// kills the command with its process group and returns false.
func (m *manager) awaitNotice(ctx context.Context) bool {
	waits := core.NewBackoffBetween(firstNotice, lastNotice, m.Seed)
	for {
		began := time.Now()
		exit, lines, err := m.runNotice(ctx)
		if ctx.Err() != nil {
			return false
		}
		if err == nil && exit == (Exit{}) {
			return true
		}
		if time.Since(began) >= lastNotice {
			waits.Reset()
		}
		wait := waits.Wait()
		m.Logger.Warn("the command of --preemption-notice "+howFailed(exit, err)+"; it is started again", "in", wait.Round(time.Millisecond), "its last lines", lines)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return false
		}
	}
}

// howFailed says how a command failed, to complete a sentence about it.
func howFailed(exit Exit, err error) string {
	switch {
	case err != nil:
		return "does not run: " + err.Error()
	case exit.Signal != "":
		return "ended by a signal: " + exit.Signal
	}
	return fmt.Sprintf("ended with exit code %d, and only 0 means that the machine is taken away", exit.Code)
}

// runNotice runs the command once. It returns how the command ended, and the last lines of its output.
func (m *manager) runNotice(ctx context.Context) (Exit, []string, error) {
	words, its, err := os.Pipe()
	if err != nil {
		return Exit{}, nil, fmt.Errorf("make a pipe for its output: %w", err)
	}
	defer words.Close()
	p, err := m.launcher.Launch(Launch{Executable: "/bin/sh", Name: "sh", Args: []string{"-c", m.PreemptionNotice}, Env: m.Environ, Output: its})
	its.Close() // the process has its own copy
	if err != nil {
		return Exit{}, nil, err
	}
	out := newOutput()
	over := make(chan struct{})
	var tasks sync.WaitGroup
	tasks.Go(func() { out.readFrom(words) })
	tasks.Go(func() {
		select {
		case <-ctx.Done():
			if err := p.Kill(); err != nil {
				m.Logger.Error("cannot kill the command of --preemption-notice", "pid", p.PID(), "error", err)
			}
		case <-over:
		}
	})
	exit, err := p.Wait()
	close(over)
	setDeadline(words, time.Now().Add(drainTime)) // a process that left the group may still have the pipe open
	tasks.Wait()
	return exit, out.lastLines(), err
}
