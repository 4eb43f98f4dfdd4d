//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// beginGroup gives a command a process group of its own, all of which is asked to end
// when its context does.
func beginGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
}

// endGroup kills what is left of the process group of a command that has ended.
func endGroup(c *exec.Cmd) {
	if c.Process != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // as a rule there is nothing left
	}
}

// setStopped stops a process or lets it go on.
func setStopped(pid int, stopped bool) error {
	if stopped {
		return syscall.Kill(pid, syscall.SIGSTOP)
	}
	return syscall.Kill(pid, syscall.SIGCONT)
}
