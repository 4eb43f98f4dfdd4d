//go:build !linux

package programs

// runningFile returns "": here only a name leads to the running file.
func runningFile() string { return "" }
