//go:build !linux

package proctest

import "os/exec"

// tie does nothing: this system cannot send a signal to a child when its parent ends.
func tie(*exec.Cmd) {}
