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

// workerAttr returns attributes with which a worker leads a new process group, so that its
// child processes can be killed together with it. The attributes also make the kernel kill the
// worker when the thread that started it ends.
func workerAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// onMainThread reports whether the caller runs on the first thread of the process.
func onMainThread() bool { return unix.Gettid() == unix.Getpid() }

// awaitEnd waits until a process has ended, without reaping it. Until it is reaped, neither its
// PID nor the id of its process group is used again.
func awaitEnd(pid int) {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return
		}
	}
}

// isStopped reports whether a process is stopped, by a signal or by a debugger.
func isStopped(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, found := bytes.Cut(text[bytes.LastIndexByte(text, ')')+1:], []byte(" "))
	return found && len(rest) > 0 && (rest[0] == 'T' || rest[0] == 't')
}

// machineMemory returns the memory of the machine in bytes, or the limit of this process's
// control group if that is lower. It returns 0 if neither is known.
func machineMemory() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	total := int64(uint64(info.Totalram) * uint64(info.Unit))
	for _, path := range []string{
		groupFile("", "memory.max"), "/sys/fs/cgroup/memory.max", // the second file is the root of the control groups that a container sees
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

// memoryKills returns how many processes of this process's control group the kernel has killed
// for lack of memory so far, or -1 if unknown. Workers are in the same control group.
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

// groupFile returns the path of the file name of this process's control group. controller
// selects the hierarchy of a cgroup version 1 controller; "" selects the hierarchy of version
// 2.
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
