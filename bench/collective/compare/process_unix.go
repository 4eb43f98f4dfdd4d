//go:build unix

package main

import (
	"os/exec"
	"syscall"
	"time"
)

// groupOf gives a command a process group of its own, all of which is asked to end
// when its context does.
func groupOf(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = 5 * time.Second
}

// setStopped stops a process or lets it go on.
func setStopped(pid int, stopped bool) error {
	if stopped {
		return syscall.Kill(pid, syscall.SIGSTOP)
	}
	return syscall.Kill(pid, syscall.SIGCONT)
}
