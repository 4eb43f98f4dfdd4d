//go:build !linux

package commands

import "syscall"

// childAttributes has nothing to ask for here: a task manager notices by its lease
// that the job manager is gone.
func childAttributes() *syscall.SysProcAttr { return nil }

// machineMemory is not known here.
func machineMemory() int64 { return 0 }

// closeFilesOnExec has nothing to do here.
func closeFilesOnExec() {}
