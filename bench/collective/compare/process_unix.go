//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// beginGroup makes a command start in its own process group. When the context of the command
// ends, the whole group gets SIGTERM.
func beginGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
}

// endGroup kills the remaining processes in the process group of a command that has exited.
func endGroup(c *exec.Cmd) {
	if c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // usually no process remains, and Kill fails
	}
}

// setStopped stops the process pid, or continues it if stopped is false.
func setStopped(pid int, stopped bool) error {
	if stopped {
		return syscall.Kill(pid, syscall.SIGSTOP)
	}
	return syscall.Kill(pid, syscall.SIGCONT)
}
