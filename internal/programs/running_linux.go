package programs

import "os"

// runningFile is a path of the file that this process, or the child that is about to
// become another program, was started from, whatever has its name by now. It is "" where
// the system does not show processes.
func runningFile() string {
	const path = "/proc/self/exe"
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	f.Close()
	return path
}
