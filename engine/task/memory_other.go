//go:build !linux

package task

// machineMemory returns 0: there is no portable way to ask, so that the default
// budget is a fixed one.
func machineMemory() int64 { return 0 }
