package mesh

import (
	"net"
	"time"
)

// keepAlive returns the keep-alive settings of connections. Keep-alive probes detect dead
// machines while no data is sent.
func (c *TCPConfig) keepAlive() net.KeepAliveConfig {
	if c.KeepAlive < 0 {
		return net.KeepAliveConfig{}
	}
	return net.KeepAliveConfig{Enable: true, Idle: c.KeepAlive,
		Interval: max(c.KeepAlive/3, time.Second), Count: 3}
}

// adjust sets the socket options of a new connection. The standard library has set TCP_NODELAY.
func (c *TCPConfig) adjust(sock net.Conn) error {
	tcp, ok := sock.(*net.TCPConn)
	if !ok {
		return nil
	}
	if err := tcp.SetKeepAliveConfig(c.keepAlive()); err != nil {
		return err
	}
	return c.limitUnacknowledged(tcp)
}
