//go:build !unix

package peerlink

import "net"

// unread reports whether something has arrived on a connection that nobody has read
// yet. On this system that cannot be found out.
func unread(net.Conn) bool { return false }
