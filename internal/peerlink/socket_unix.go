//go:build unix

package peerlink

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// control sets the buffer sizes of a socket before connect or listen, since TCP cannot reduce a
// window that was announced. Accepted sockets inherit the sizes.
func (t TCP) control(_, _ string, raw syscall.RawConn) error {
	if t.SocketBuffer <= 0 {
		return nil
	}
	var failed error
	err := raw.Control(func(fd uintptr) {
		for _, option := range []int{unix.SO_SNDBUF, unix.SO_RCVBUF} {
			if failed == nil {
				failed = os.NewSyscallError("setsockopt", unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, option, t.SocketBuffer))
			}
		}
	})
	if err != nil {
		return err
	}
	return failed
}
