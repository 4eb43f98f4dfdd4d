package security

import (
	"net"
	"sync"
)

// LimitListener returns a listener that accepts connections from inner, of which at most n are
// open at a time. Further connections wait in the queue of the operating system. So silent
// connections cannot use up the file descriptors that task managers need.
func LimitListener(inner net.Listener, n int) net.Listener {
	return &limited{Listener: inner, free: make(chan struct{}, n), closed: make(chan struct{})}
}

type limited struct {
	net.Listener
	free   chan struct{} // has an element per open connection
	closed chan struct{}
	once   sync.Once
	err    error
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.free <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.free
		return nil, err
	}
	return &limitedConn{Conn: c, free: l.free}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() {
		close(l.closed)
		l.err = l.Listener.Close()
	})
	return l.err
}

type limitedConn struct {
	net.Conn
	free <-chan struct{}
	once sync.Once
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.free })
	return err
}

// CloseWrite closes the sending direction. If a connection has this method, net/http calls it
// after it has refused a request. A client that is still sending the request can then read the
// reason.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
