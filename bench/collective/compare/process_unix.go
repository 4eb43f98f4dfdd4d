//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// beginGroup gives a command its own process group. When the context of the command ends, the
// whole group is asked to end.
func beginGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
}

// endGroup kills what is left of the process group of a command that has ended.
func endGroup(c *exec.Cmd) {
	if c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // usually there is nothing left
	}
}

// setStopped stops or continues a process.
func setStopped(pid int, stopped bool) error {
	if stopped {
		return syscall.Kill(pid, syscall.SIGSTOP)
	}
	return syscall.Kill(pid, syscall.SIGCONT)
}
