package cputime

import (
	"time"

	"golang.org/x/sys/unix"
)

// thread returns the processor time of the calling thread.
func thread() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil { // only a kernel without this clock refuses it
		return passed()
	}
	return time.Duration(t.Nano())
}
