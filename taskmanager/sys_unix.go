//go:build unix && !linux

package taskmanager

import "syscall"

// workerAttr has a worker lead a process group of its own, so that what it starts can
// be killed with it. That a worker ends with its task manager rests on the pipe alone
// here: its end tells the worker.
func workerAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// onMainThread returns false: which thread it is matters on Linux alone.
func onMainThread() bool { return false }

// awaitEnd returns at once: there is no portable way to wait without reaping.
func awaitEnd(int) {}

// isStopped returns false: there is no portable way to ask.
func isStopped(int) bool { return false }

// machineMemory returns 0: there is no portable way to ask.
func machineMemory() int64 { return 0 }

// memoryKills returns -1: there is no way to know.
func memoryKills() int64 { return -1 }
