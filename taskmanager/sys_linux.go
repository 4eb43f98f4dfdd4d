package taskmanager

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// workerAttr makes a worker lead a process group of its own, so that its child processes can be
// killed with it. The worker dies with the thread that starts it.
func workerAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// onMainThread reports whether this is the first thread of the process.
func onMainThread() bool { return unix.Gettid() == unix.Getpid() }

// awaitEnd waits until a process has ended, without reaping it. Until it is reaped, its number
// and that of its group are not used again.
func awaitEnd(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// isStopped reports whether a process was stopped by a signal, or by a debugger.
func isStopped(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, found := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
	return found && len(rest) > 0 && (rest[0] == 'T' || rest[0] == 't')
}

// machineMemory returns the bytes of memory of the machine, or the limit of this
// process's control group where that is lower; 0 if unknown.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	total := int64(uint64(info.Totalram) * uint64(info.Unit))
	for _, path := range []string{
		groupFile("", "memory.max"), "/sys/fs/cgroup/memory.max", // the latter is for containers
		groupFile("memory", "memory.limit_in_bytes"), "/sys/fs/cgroup/memory/memory.limit_in_bytes",
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit > 0 {
			total = min(total, limit)
		}
	}
	return total
}

// memoryKills returns how many processes of this one's control group the kernel has
// killed so far for lack of memory, -1 if unknown. Workers are in the same group.
func memoryKills() int64 {
	for _, path := range []string{
		groupFile("", "memory.events"), "/sys/fs/cgroup/memory.events",
		groupFile("memory", "memory.oom_control"), "/sys/fs/cgroup/memory/memory.oom_control",
	} {
		text, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(text) {
			if count, found := bytes.CutPrefix(line, []byte("oom_kill ")); found {
				if n, err := strconv.ParseInt(string(bytes.TrimSpace(count)), 10, 64); err == nil {
					return n
				}
			}
		}
	}
	return -1
}

// groupFile returns the path of a file of this process's control group, in the hierarchy of a
// version 1 controller; controller "" means version 2.
func groupFile(controller, name string) string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.SplitN(strings.TrimSpace(line), ":", 3); len(fields) == 3 && fields[1] == controller {
			return filepath.Join("/sys/fs/cgroup", controller, fields[2], name)
		}
	}
	return ""
}
