//go:build !unix

package peerlink

import "syscall"

// control does nothing: SocketBuffer, which is for tests, is used only on Unix.
func (TCP) control(_, _ string, _ syscall.RawConn) error { return nil }
