//go:build unix

package usage

import (
	"os"
	"runtime"
	"syscall"
	"time"
)

// CPU returns the processor time that all threads of this process have used in user and system
// mode, or 0 if the system call fails. Other processes change processor time much less than
// wall time.
func CPU() time.Duration {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// peakOf returns the largest resident size, in bytes, of a process that has ended.
func peakOf(ended *os.ProcessState) int64 {
	r, ok := ended.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(r.Maxrss)
	}
	return int64(r.Maxrss) << 10
}
