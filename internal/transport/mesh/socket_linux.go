package mesh

import (
	"os"

	"golang.org/x/sys/unix"
)

func setOptions(fd uintptr, c *TCPConfig) error {
	if ms := c.UserTimeout.Milliseconds(); ms > 0 {
		if err := unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(ms)); err != nil {
			return os.NewSyscallError("setsockopt TCP_USER_TIMEOUT", err)
		}
	}
	return setBuffers(int(fd), c)
}
