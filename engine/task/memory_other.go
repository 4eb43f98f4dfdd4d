//go:build !linux

package task

// machineMemory returns 0, as there is no portable way to ask. The default budget is then a
// fixed one.
func machineMemory() int64 { return 0 }
