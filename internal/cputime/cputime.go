// Package cputime measures the processor time that a call takes, as opposed to the time that passes while
// it waits or while others have the processor.
package cputime

import (
	"runtime"
	"time"
)

// Of calls f, and returns the processor time that the calling goroutine spends in it, in the program and
// in the operating system. Goroutines that f starts are not counted. Where the operating system does not
// tell the time of a thread, it is the time that passes. The goroutine is bound to its thread meanwhile,
// which makes each wait of f a few microseconds longer.
func Of(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := thread()
	f()
	return thread() - began
}

var start = time.Now()

// passed returns a time that passes.
func passed() time.Duration { return time.Since(start) }
