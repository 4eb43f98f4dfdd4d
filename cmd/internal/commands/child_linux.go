package commands

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes has the system end a child when this process is killed. It also keeps the
// terminal's Ctrl-C from the child, which this process stops in order.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// machineMemory returns the machine's memory in bytes, 0 if unknown.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// closeFilesOnExec keeps inherited files, beyond the usual three, from the processes that this
// one starts.
func closeFilesOnExec() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			syscall.CloseOnExec(fd)
		}
	}
}
