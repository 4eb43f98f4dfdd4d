//go:build !unix

package main

import (
	"errors"
	"os/exec"
)

// beginGroup and endGroup do nothing: this system has no process groups.
func beginGroup(*exec.Cmd) {}

func endGroup(*exec.Cmd) {}

// setStopped returns an error, because this system cannot stop processes.
func setStopped(int, bool) error { return errors.New("processes cannot be stopped on this system") }
