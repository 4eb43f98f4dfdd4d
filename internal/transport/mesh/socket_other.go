//go:build !linux

package mesh

import "net"

// limitUnacknowledged leaves it to the system how long what was sent may remain
// unacknowledged.
func (c *TCPConfig) limitUnacknowledged(*net.TCPConn) error { return nil }
