//go:build !linux

package mesh

import "net"

// ownSocket does not exist where the runtime's poller waits for everything.
type ownSocket struct {
	net.Conn
	fd int
}

// Alone is Loner's.
func (c *tcpConn) Alone(bool) {}
