//go:build !linux

package proctest

import "os/exec"

// tie does nothing: this system does not tell a child that its parent has ended.
func tie(*exec.Cmd) {}
