package programs

import "os"

// runningFile returns a path that leads to the file from which this process was started, even
// if another file has its name by now. In a child before exec it leads to the same file. It is
// "" where the system does not show processes.
func runningFile() string {
	const path = "/proc/self/exe"
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	f.Close()
	return path
}
