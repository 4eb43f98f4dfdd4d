//go:build unix && !linux

package taskmanager

import "syscall"

// workerAttr makes a worker lead a process group of its own, so that its child processes can be
// killed with it. Here only the end of its pipe tells a worker that the task manager is gone.
func workerAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// onMainThread returns false: the thread matters on Linux only.
func onMainThread() bool { return false }

// awaitEnd returns at once: there is no portable way to wait without reaping.
func awaitEnd(int) {}

// isStopped returns false: there is no portable way to ask.
func isStopped(int) bool { return false }

// machineMemory returns 0: there is no portable way to ask.
func machineMemory() int64 { return 0 }

// memoryKills returns -1: there is no way to know.
func memoryKills() int64 { return -1 }
