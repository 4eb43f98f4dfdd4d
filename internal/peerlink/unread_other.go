//go:build !unix

package peerlink

import "net"

// unread returns false: on this system it cannot be determined whether there are unread bytes.
func unread(net.Conn) bool { return false }
