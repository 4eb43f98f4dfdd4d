//go:build !linux

package mesh

import "net"

// ownSocket is not used: on systems other than Linux, all sockets are in the runtime's poller.
type ownSocket struct {
	net.Conn
	fd int
}

// Alone implements SerialWaiter.
func (c *tcpConn) Alone(bool) {}
