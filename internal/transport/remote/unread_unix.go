//go:build unix

package remote

import (
	"net"
	"syscall"
)

// unread reports whether something has arrived on a connection that nobody has read
// yet, the end of the connection included. It does not wait for who reads.
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
	var b [1]byte
	_ = raw.Control(func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		waits = err == nil
	})
	return waits
}
