package mesh

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// limitUnacknowledged sets the time for which sent bytes may remain unacknowledged to
// UserTimeout.
func (c *TCPConfig) limitUnacknowledged(sock *net.TCPConn) error {
	ms := c.UserTimeout.Milliseconds()
	if ms <= 0 {
		return nil
	}
	raw, err := sock.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_TCP, unix.TCP_USER_TIMEOUT, int(ms))
	}); err != nil {
		return err
	}
	return os.NewSyscallError("setsockopt TCP_USER_TIMEOUT", failed)
}
