//go:build unix

package mesh

import (
	"os"

	"golang.org/x/sys/unix"
)

func setBuffers(fd int, c *TCPConfig) error {
	if c.SocketBuffer <= 0 {
		return nil
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, c.SocketBuffer); err != nil {
		return os.NewSyscallError("setsockopt SO_SNDBUF", err)
	}
	return os.NewSyscallError("setsockopt SO_RCVBUF", unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, c.SocketBuffer))
}
