package commands

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes returns attributes by which the kernel sends SIGTERM to a child process when
// this process dies. The attributes also put the child into a new process group, so that Ctrl-C
// in the terminal interrupts only this process, which then stops the child gracefully.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}

// machineMemory returns the machine's memory in bytes, or 0 if it is unknown.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

// closeFilesOnExec marks all open file descriptors above 2 as close-on-exec. Processes that
// this process starts then do not inherit the files that this process has inherited itself.
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
