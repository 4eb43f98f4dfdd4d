//go:build unix

package peerlink

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// unread reports whether unread bytes, or the end of the connection, have arrived on nc. It
// neither reads nor waits for a goroutine that reads. It does not consume a reset either, which
// the operating system reports only once.
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
