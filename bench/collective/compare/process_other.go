//go:build !unix

package main

import (
	"errors"
	"os/exec"
)

// groupOf does nothing: this system has no process groups.
func groupOf(*exec.Cmd) {}

// setStopped is an error: this system does not stop processes.
func setStopped(int, bool) error { return errors.New("processes cannot be stopped on this system") }
