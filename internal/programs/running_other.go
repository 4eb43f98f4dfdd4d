//go:build !linux

package programs

// runningFile is "" where no path leads to what runs but its name.
func runningFile() string { return "" }
