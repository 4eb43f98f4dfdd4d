package security

import (
	"container/list"
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/peer"
)

// NewTokenListener returns a listener for a gRPC server with TokenOptions. Clients that know
// the token can connect, however many clients without the token connect. A connection is
// unauthenticated until a call on it has sent the token. Unauthenticated connections are closed
// after patience. When a connection arrives while limit connections are open, the listener
// closes the oldest unauthenticated connection. It never closes authenticated connections: if
// limit of them are open, a new connection waits until one of them is closed.
func NewTokenListener(inner net.Listener, limit int, patience time.Duration) net.Listener {
	d := &tokenListener{Listener: inner, limit: limit, patience: patience, unauthenticated: list.New()}
	d.left.L = &d.mu
	return d
}

type tokenListener struct {
	net.Listener
	limit    int
	patience time.Duration

	mu              sync.Mutex
	left            sync.Cond // signals that open or closed has changed; its lock is mu
	open            int
	unauthenticated *list.List // of *tokenConn, the oldest first
	closed          bool
}

func (d *tokenListener) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	v := &tokenConn{Conn: c, listener: d}
	d.mu.Lock()
	if first := d.unauthenticated.Front(); first != nil && d.open >= d.limit {
		out := first.Value.(*tokenConn)
		out.leave()
		d.mu.Unlock()
		_ = out.Conn.Close()
		d.mu.Lock()
	}
	for d.open >= d.limit && !d.closed {
		d.left.Wait()
	}
	if d.closed {
		d.mu.Unlock()
		_ = c.Close()
		return nil, net.ErrClosed
	}
	d.open++
	v.waiting = d.unauthenticated.PushBack(v)
	v.patience = time.AfterFunc(d.patience, func() { d.expire(v) })
	d.mu.Unlock()
	return v, nil
}

func (d *tokenListener) Close() error {
	d.mu.Lock()
	d.closed = true
	d.left.Broadcast()
	d.mu.Unlock()
	return d.Listener.Close()
}

// expire closes v if it is still unauthenticated.
func (d *tokenListener) expire(v *tokenConn) {
	d.mu.Lock()
	late := v.waiting != nil
	if late {
		v.leave()
	}
	d.mu.Unlock()
	if late {
		_ = v.Conn.Close()
	}
}

// tokenConn is a connection of a token listener. Its fields are guarded by the listener's mu.
type tokenConn struct {
	net.Conn
	listener *tokenListener
	waiting  *list.Element // element in unauthenticated; nil when authenticated
	patience *time.Timer
	gone     bool // the connection no longer counts as open
}

// authenticated marks the connection as authenticated. The caller holds the listener's mu.
func (v *tokenConn) authenticated() {
	if v.waiting != nil {
		v.listener.unauthenticated.Remove(v.waiting)
		v.waiting = nil
		v.patience.Stop()
	}
}

// leave records that the connection no longer counts as open or as unauthenticated. Calling it
// again does nothing. The caller holds the listener's mu, and closes the connection afterwards.
func (v *tokenConn) leave() {
	v.authenticated()
	if !v.gone {
		v.gone = true
		v.listener.open--
		v.listener.left.Broadcast()
	}
}

func (v *tokenConn) Close() error {
	v.listener.mu.Lock()
	v.leave()
	v.listener.mu.Unlock()
	return v.Conn.Close()
}

// RemoteAddr returns an address that contains the connection, so that tokenShown can find the
// connection of a call: gRPC passes the address with every call, also with TLS.
func (v *tokenConn) RemoteAddr() net.Addr { return tokenAddr{v.Conn.RemoteAddr(), v} }

type tokenAddr struct {
	net.Addr
	of *tokenConn
}

// tokenShown marks the connection of a call as authenticated, if a token listener has accepted
// the connection. ctx is the context of the call.
func tokenShown(ctx context.Context) {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(tokenAddr); ok {
			a.of.listener.mu.Lock()
			a.of.authenticated()
			a.of.listener.mu.Unlock()
		}
	}
}
