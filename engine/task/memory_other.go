//go:build !linux

package task

// machineMemory returns 0, as there is no portable way to find out. The default budget is then
// a fixed number.
func machineMemory() int64 { return 0 }
