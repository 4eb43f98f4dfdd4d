//go:build !linux

package mesh

import "net"

// ownSocket is not used: except on Linux, the runtime's poller waits for every socket.
type ownSocket struct {
	net.Conn
	fd int
}

// Alone implements SerialWaiter.
func (c *tcpConn) Alone(bool) {}
