//go:build !unix

package peerlink

import "net"

// unread returns false: on this system it cannot be found out whether unread bytes wait.
func unread(net.Conn) bool { return false }
