package proctest

import (
	"os/exec"
	"syscall"
)

// tie has the system kill the program when this process ends. It keeps what the
// test asked for.
func tie(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
}
