//go:build unix

package peerlink

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// unread reports whether something has arrived on a connection that nobody has read
// yet, the end of the connection included. It does not wait for who reads, and takes nothing
// from it: a reset, which the system tells once, neither.
func unread(nc net.Conn) bool {
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return false
	}
	waits := false
	_ = raw.Control(func(fd uintptr) {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		waits = err == nil && n > 0
	})
	return waits
}
