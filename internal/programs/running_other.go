//go:build !linux

package programs

// runningFile returns "": this system has no path that leads to the executable of a process after
// its file was replaced.
func runningFile() string { return "" }
