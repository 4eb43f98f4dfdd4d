//go:build unix

package taskmanager

import (
	"cmp"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// killGroup kills the process group that the process pid leads.
func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// lockFile takes an exclusive lock on f, which is held until f is closed or the process ends.
// It returns false if another process holds the lock.
func lockFile(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// readReady waits until a pipe has bytes, and takes them out of it and passes them to store while mu is
// locked.
func readReady(f *os.File, buf []byte, mu sync.Locker, store func([]byte)) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Read(func(fd uintptr) bool {
		mu.Lock()
		defer mu.Unlock()
		n, err := unix.Read(int(fd), buf)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return false
		case errors.Is(err, unix.EINTR):
		case err != nil:
			failed = os.NewSyscallError("read", err)
		case n == 0:
			failed = io.EOF
		default:
			store(buf[:n])
		}
		return true
	})
	return cmp.Or(err, failed)
}

// readable reports whether a read of a pipe would return at once.
func readable(f *os.File) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	ready := false
	err = conn.Control(func(fd uintptr) {
		fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, 0)
		ready = err == nil && n > 0
	})
	return err == nil && ready
}

// busy reports whether err means that an executable could not be started because a process has
// it open for writing. A process that was forked while the file was being written has the file
// open until it executes its own program.
func busy(err error) bool { return errors.Is(err, syscall.ETXTBSY) }

// endedBy converts the state of a process that was reaped to an Exit.
func endedBy(s *os.ProcessState) Exit {
	if status, ok := s.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return Exit{Code: -1, Signal: status.Signal().String()}
	}
	return Exit{Code: s.ExitCode()}
}
