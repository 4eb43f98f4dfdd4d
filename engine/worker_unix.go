//go:build unix

package engine

import (
	"fmt"
	"os"
	"syscall"
)

// inherited returns the pipe with file descriptor fd, with which the process was started. It makes
// sure that processes that the job starts do not inherit the pipe: if such a process outlived the
// worker, the task manager would not notice the worker's end.
func inherited(fd int, name string) (*os.File, error) {
	var status syscall.Stat_t
	if err := syscall.Fstat(fd, &status); err != nil {
		return nil, fmt.Errorf("file descriptor %d: %w", fd, err)
	}
	if kind := status.Mode & syscall.S_IFMT; kind != syscall.S_IFIFO && kind != syscall.S_IFSOCK {
		return nil, fmt.Errorf("file descriptor %d is no pipe", fd)
	}
	syscall.CloseOnExec(fd)
	if err := syscall.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("file descriptor %d: %w", fd, err)
	}
	return os.NewFile(uintptr(fd), name), nil
}
