//go:build !linux

package mesh

import "net"

// limitUnacknowledged does nothing: the system decides how long sent bytes may remain
// unacknowledged.
func (c *TCPConfig) limitUnacknowledged(*net.TCPConn) error { return nil }
