package programs

import "os"

// runningFile returns a path that leads to the executable of this process, even if the file was
// replaced since the process started. A child process that has not called exec yet can open the
// same file with the path. runningFile returns "" if /proc is not mounted.
func runningFile() string {
	const path = "/proc/self/exe"
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	f.Close()
	return path
}
