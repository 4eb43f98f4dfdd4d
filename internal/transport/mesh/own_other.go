//go:build !unix

package mesh

import "net"

// ownSocket does not exist where the runtime's poller waits for everything.
type ownSocket struct{ net.Conn }

// Alone is Loner's.
func (c *tcpConn) Alone(bool) {}
