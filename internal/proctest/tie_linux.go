package proctest

import (
	"os/exec"
	"syscall"
)

// tie makes the system kill the program when this process ends. It keeps other attributes of the
// process that the test has set.
func tie(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
