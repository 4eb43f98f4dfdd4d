package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMainCancelled(t *testing.T) {
	signals := make(chan os.Signal, 2)
	job := Define("slow", func(b *Builder, _ struct{}) error {
		Collect(transform(numbers(b, 100), "", func(c *Context, n int64) (int64, error) {
			select {
			case signals <- os.Interrupt:
			default:
			}
			<-c.Done()
			return 0, context.Cause(c)
		}), "x")
		return nil
	})
	got := runIn(t, job, programEnv{listen: hears(signals), exit: func(int) {}}, "--progress off --parallelism 1")
	require.Equal(t, outcome{exitFailed, "", "prog: cancelled\n"}, got)
}

func TestMainFailureThatSpeaksOfCancelling(t *testing.T) {
	job := Define("fetches", func(b *Builder, _ struct{}) error {
		transform(numbers(b, 1), "fetch", func(*Context, int64) (int64, error) {
			return 0, fmt.Errorf("fetch the weights: %w", context.Canceled)
		})
		return nil
	})
	got := runProgram(t, job, "--progress off")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, `prog: error: job "fetches": operator Transform "fetch"`)
	require.Contains(t, got.stderr, "fetch the weights: context canceled\n")

	got = runProgram(t, squares, "--progress off", AfterRun(func(squaresArgs, *Result) error { return context.Canceled }))
	require.Equal(t, outcome{exitFailed, "", "prog: error: after the run: context canceled\n"}, got)
}

// unremovableSink is a sink whose output cannot be removed.
type unremovableSink struct{}

func (unremovableSink) Begin() error  { return nil }
func (unremovableSink) Commit() error { return nil }
func (unremovableSink) Abort() error  { return errors.New("cannot remove half-written") }

func TestMainCancelledWithSomethingLeft(t *testing.T) {
	signals := make(chan os.Signal, 2)
	job := Define("slow", func(b *Builder, _ struct{}) error {
		d := transform(numbers(b, 100), "", func(c *Context, n int64) (int64, error) {
			select {
			case signals <- os.Interrupt:
			default:
			}
			<-c.Done()
			return 0, context.Cause(c)
		})
		b.Add(Spec{Op: "Write", Inputs: []Port{{From: d}}, Operator: func() Operator { return swallower{} }, Sink: unremovableSink{}})
		return nil
	})
	got := runIn(t, job, programEnv{listen: hears(signals), exit: func(int) {}}, "--progress off --parallelism 1")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.stderr, "prog: error: job \"slow\": cancelled\n")
	require.Contains(t, got.stderr, "remove what was written: cannot remove half-written\n")
}

func TestMainSignalWhileBuilding(t *testing.T) {
	signals := make(chan os.Signal, 2)
	exited := make(chan int, 1)
	job := Define("slow", func(b *Builder, _ struct{}) error {
		signals <- os.Interrupt
		require.Equal(t, exitFailed, <-exited, "the process must exit at once")
		return errors.New("the process is gone by now")
	})
	got := runIn(t, job, programEnv{listen: hears(signals), exit: func(code int) { exited <- code }}, "--progress off")
	require.True(t, strings.HasPrefix(got.stderr, "prog: cancelled\n"), got.stderr)
}

func TestMainSignalsDuringHooks(t *testing.T) {
	listening := false
	listen := func() (<-chan os.Signal, func()) {
		listening = true
		return nil, func() { listening = false }
	}
	heard := []bool{}
	job := Define("x", func(b *Builder, _ struct{}) error {
		dropped(transform(numbers(b, 1), "", func(_ *Context, n int64) (int64, error) { heard = append(heard, listening); return n, nil }))
		return nil
	})
	got := runIn(t, job, programEnv{listen: listen}, "--progress off --parallelism 1", AfterRun(func(struct{}, *Result) error {
		heard = append(heard, listening)
		return nil
	}))
	require.Equal(t, outcome{}, got)
	require.Equal(t, []bool{true, false}, heard)
}

func TestMainSecondSignal(t *testing.T) {
	signals := make(chan os.Signal, 2)
	exited := make(chan int, 1)
	job := Define("stuck", func(b *Builder, _ struct{}) error {
		Collect(transform(numbers(b, 1), "", func(c *Context, n int64) (int64, error) {
			signals <- os.Interrupt
			<-c.Done()
			signals <- os.Interrupt
			require.Equal(t, exitFailed, <-exited)
			return 0, context.Cause(c)
		}), "x")
		return nil
	})
	got := runIn(t, job, programEnv{listen: hears(signals), exit: func(code int) { exited <- code }}, "--progress off --parallelism 1")
	require.Equal(t, exitFailed, got.code)
}

// TestMainSignalsAtOnce requires that a program treats two signals that arrive nearly at the
// same time as one signal. timeout(1) sends such signals: it signals the process and then its
// process group.
func TestMainSignalsAtOnce(t *testing.T) {
	signals := make(chan os.Signal) // a send returns after the program has handled the previous signals
	begin := time.Unix(0, 0)
	at := begin
	job := Define("slow", func(b *Builder, _ struct{}) error {
		Collect(transform(numbers(b, 1), "", func(c *Context, n int64) (int64, error) {
			signals <- os.Interrupt
			<-c.Done()
			at = begin.Add(sameSignal - 1)
			signals <- os.Interrupt
			signals <- os.Interrupt
			return 0, context.Cause(c)
		}), "x")
		return nil
	})
	w := programEnv{listen: hears(signals), now: func() time.Time { return at }, exit: func(int) { t.Error("the program must not exit before the run has ended") }}
	got := runIn(t, job, w, "--progress off --parallelism 1")
	require.Equal(t, outcome{exitFailed, "", "prog: cancelled\n"}, got)
}

func TestMainAbandonsWhatIgnoresCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		signals, release := make(chan os.Signal, 2), make(chan struct{})
		job := Define("deaf", func(b *Builder, _ struct{}) error {
			Collect(transform(numbers(b, 1), "deaf", func(c *Context, n int64) (int64, error) {
				signals <- os.Interrupt
				<-release
				return n, nil
			}), "x")
			return nil
		})
		got := runIn(t, job, programEnv{listen: hears(signals)}, "--progress off --parallelism 1")
		require.Equal(t, exitFailed, got.code)
		require.Contains(t, got.stderr, `abandoned after 10s: operator Transform "deaf"`)
		require.Contains(t, got.stderr, "cancelled")
		close(release) // in a real program, the exit would end this goroutine
	})
}
