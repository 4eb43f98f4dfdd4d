//go:build !linux

package commands

import "syscall"

// childAttributes returns nil, because this system cannot signal a child when its parent dies.
// On this system, a task manager notices that the job manager has died when its lease expires.
func childAttributes() *syscall.SysProcAttr { return nil }

// machineMemory returns 0, which means that the machine's memory is unknown.
func machineMemory() int64 { return 0 }

// closeFilesOnExec does nothing on this system.
func closeFilesOnExec() {}
