//go:build !linux

package mesh

import "net"

// limitUnacknowledged does nothing: UserTimeout is used only on Linux.
func (c *TCPConfig) limitUnacknowledged(*net.TCPConn) error { return nil }
