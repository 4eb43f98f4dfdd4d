package mesh

import (
	"net"
	"time"
)

// keepAlive returns the settings that find dead machines when nothing is sent.
func (c *TCPConfig) keepAlive() net.KeepAliveConfig {
	if c.KeepAlive < 0 {
		return net.KeepAliveConfig{}
	}
	return net.KeepAliveConfig{Enable: true, Idle: c.KeepAlive,
		Interval: max(c.KeepAlive/3, time.Second), Count: 3}
}

// adjust sets the options of a new connection. TCP_NODELAY is set by the standard library.
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
