package security

import (
	"container/list"
	"context"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc/peer"
)

// NewDoor returns a listener for a gRPC server with TokenOptions. It keeps room for those that
// know the token, however many others connect. A stranger is a connection on which no call has
// shown the token yet; it is closed after patience. Where more than limit connections are open,
// the oldest stranger is closed to make room for the new one. Connections that have shown the
// token stay as long as they like; where limit of them are open, the next one waits until one
// is closed.
func NewDoor(inner net.Listener, limit int, patience time.Duration) net.Listener {
	d := &door{Listener: inner, limit: limit, patience: patience, strangers: list.New()}
	d.left.L = &d.mu
	return d
}

type door struct {
	net.Listener
	limit    int
	patience time.Duration

	mu        sync.Mutex
	left      sync.Cond // signals that open or closed has changed
	open      int
	strangers *list.List // of *visitor, the oldest in front
	closed    bool
}

func (d *door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	v := &visitor{Conn: c, door: d}
	d.mu.Lock()
	if first := d.strangers.Front(); first != nil && d.open >= d.limit {
		out := first.Value.(*visitor)
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
	v.place = d.strangers.PushBack(v)
	v.patience = time.AfterFunc(d.patience, func() { d.tire(v) })
	d.mu.Unlock()
	return v, nil
}

func (d *door) Close() error {
	d.mu.Lock()
	d.closed = true
	d.left.Broadcast()
	d.mu.Unlock()
	return d.Listener.Close()
}

// tire closes a visitor if it is still a stranger.
func (d *door) tire(v *visitor) {
	d.mu.Lock()
	strange := v.place != nil
	if strange {
		v.leave()
	}
	d.mu.Unlock()
	if strange {
		_ = v.Conn.Close()
	}
}

// visitor is a connection that came through a door. Its fields are under the door's lock.
type visitor struct {
	net.Conn
	door     *door
	place    *list.Element // among the strangers, nil once the token was shown
	patience *time.Timer
	gone     bool // it has left, and its room is free
}

// known records that a visitor has shown the token. It is called under the door's lock.
func (v *visitor) known() {
	if v.place != nil {
		v.door.strangers.Remove(v.place)
		v.place = nil
		v.patience.Stop()
	}
}

// leave frees a visitor's room, once. It is called under the door's lock; the caller closes the
// connection afterwards.
func (v *visitor) leave() {
	v.known()
	if !v.gone {
		v.gone = true
		v.door.open--
		v.door.left.Broadcast()
	}
}

func (v *visitor) Close() error {
	v.door.mu.Lock()
	v.leave()
	v.door.mu.Unlock()
	return v.Conn.Close()
}

// RemoteAddr returns an address that refers to the visitor: gRPC passes it on with every call,
// also through TLS.
func (v *visitor) RemoteAddr() net.Addr { return visitorAddr{v.Conn.RemoteAddr(), v} }

type visitorAddr struct {
	net.Addr
	of *visitor
}

// welcome records that the call of ctx has shown the token, if it came through a door.
func welcome(ctx context.Context) {
	if p, ok := peer.FromContext(ctx); ok {
		if a, ok := p.Addr.(visitorAddr); ok {
			a.of.door.mu.Lock()
			a.of.known()
			a.of.door.mu.Unlock()
		}
	}
}
