package mesh

import (
	"context"
	"net"
	"syscall"
	"time"
)

// keepAlive is how dead machines are found where nothing is sent.
func (c *TCPConfig) keepAlive() net.KeepAliveConfig {
	if c.KeepAlive < 0 {
		return net.KeepAliveConfig{}
	}
	return net.KeepAliveConfig{Enable: true, Idle: c.KeepAlive,
		Interval: max(c.KeepAlive/3, time.Second), Count: 3}
}

// control sets the options that must be there before a socket connects or listens;
// accepted ones inherit them. TCP_NODELAY is set by the standard library.
func (c *TCPConfig) control(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) { failed = setOptions(fd, c) })
	if err != nil {
		return err
	}
	return failed
}

func listen(ctx context.Context, c *TCPConfig) (net.Listener, error) {
	config := net.ListenConfig{Control: c.control, KeepAlive: -1, KeepAliveConfig: c.keepAlive()}
	return config.Listen(ctx, "tcp", c.Listen)
}

func (t *TCP) dialer() *net.Dialer {
	return &net.Dialer{Control: t.cfg.control, KeepAlive: -1, KeepAliveConfig: t.cfg.keepAlive()}
}
