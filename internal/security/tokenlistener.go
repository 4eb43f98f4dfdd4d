package security

import (
	"container/list"
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/peer"
)

// NewTokenListener returns a listener for a gRPC server with TokenOptions. It keeps room for
// clients that know the token, however many others connect. A connection on which no call has
// shown the token yet is unauthenticated; it is closed after patience. Where more than limit
// connections are open, the oldest unauthenticated one is closed to make room for the new one.
// Authenticated connections stay as long as they like; where limit of them are open, the next
// connection waits until one is closed.
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
	left            sync.Cond // signals that open or closed has changed
	open            int
	unauthenticated *list.List // of *tokenConn, the oldest in front
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

// expire closes a connection that is still unauthenticated.
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

// tokenConn is a connection of a token listener. Its fields are under the listener's lock.
type tokenConn struct {
	net.Conn
	listener *tokenListener
	waiting  *list.Element // among the unauthenticated, nil once the token was shown
	patience *time.Timer
	gone     bool // it has left, and its room is free
}

// authenticated records that the token was shown. It is called under the listener's lock.
func (v *tokenConn) authenticated() {
	if v.waiting != nil {
		v.listener.unauthenticated.Remove(v.waiting)
		v.waiting = nil
		v.patience.Stop()
	}
}

// leave frees the room of a connection, once. It is called under the listener's lock; the caller
// closes the connection afterwards.
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

// RemoteAddr returns an address that refers to the connection: gRPC passes it on with every call,
// also through TLS.
func (v *tokenConn) RemoteAddr() net.Addr { return tokenAddr{v.Conn.RemoteAddr(), v} }

type tokenAddr struct {
	net.Addr
	of *tokenConn
}

// tokenShown records that the call of ctx has shown the token, if its connection is one of a
// token listener.
func tokenShown(ctx context.Context) {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(tokenAddr); ok {
			a.of.listener.mu.Lock()
			a.of.authenticated()
			a.of.listener.mu.Unlock()
		}
	}
}
