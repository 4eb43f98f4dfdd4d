//go:build unix

package usage

import (
	"syscall"
	"time"
)

// CPU returns the processor time that all threads of this process have used, in
// user and in system mode; 0 where the system does not tell. Other processes
// disturb it much less than the time of day.
func CPU() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
