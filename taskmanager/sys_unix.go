//go:build unix && !linux

package taskmanager

import "syscall"

// workerAttr returns attributes with which a worker leads a new process group, so that its
// child processes can be killed together with it. On these systems a worker notices the end of
// the task manager only by EOF on its pipe.
func workerAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// onMainThread returns false, because only on Linux does it matter on which thread workers are
// started.
func onMainThread() bool { return false }

// awaitEnd returns at once, because there is no portable way to wait for a process without
// reaping it.
func awaitEnd(int) {}

// isStopped returns false, because there is no portable way to determine whether a process is
// stopped.
func isStopped(int) bool { return false }

// machineMemory returns 0 for unknown, because there is no portable way to determine the memory
// of the machine.
func machineMemory() int64 { return 0 }

// memoryKills returns -1 for unknown, because there is no portable way to count such kills.
func memoryKills() int64 { return -1 }
