//go:build !unix

package peerlink

import "syscall"

// control changes nothing: the options are for tests, and for systems that have them.
func (TCP) control(_, _ string, _ syscall.RawConn) error { return nil }
