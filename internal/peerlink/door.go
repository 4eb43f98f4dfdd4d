package peerlink

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Door accepts the connections of one kind and scope.
type Door struct {
	Kind  Kind
	Scope string // to whom they belong, as in Hello
	Epoch uint32

	// Serve is called for each connection that has proved itself, in a goroutine of its own. It
	// looks at the hello, and then calls Welcome, after which the connection belongs to the
	// door's owner, or returns an error. The error is sent to the other side, and the
	// connection is closed. Serve must not take longer than a handshake.
	Serve func(*Caller) error

	// Replaced, if not nil, is called when a door of a later epoch takes this one's place.
	// It must not wait for anything.
	Replaced func(epoch uint32)

	// Distrust, if not nil, is called when a connection for this door did not prove that it
	// knows the secret.
	Distrust func(from net.Addr, err error)
}

// doorKey names a door.
type doorKey struct {
	kind  Kind
	scope name
}

// Opened is a door that is open. Its owner closes it.
type Opened struct {
	Door
	port    *Port
	key     doorKey
	calls   sync.WaitGroup        // of Serve
	serving map[net.Conn]struct{} // connections that are not welcomed yet (guarded by the port)
	shut    bool                  // (guarded by the port)
}

// Open opens a door. It replaces a door of an earlier epoch; an open door of the same epoch or
// a later one is an error.
func (p *Port) Open(d Door) (*Opened, error) {
	o := &Opened{Door: d, port: p, key: doorKey{d.Kind, nameOf(d.Scope)}, serving: make(map[net.Conn]struct{})}
	p.mu.Lock()
	old := p.doors[o.key]
	switch {
	case p.closed:
		p.mu.Unlock()
		return nil, ErrClosed
	case old != nil && old.Epoch == d.Epoch:
		p.mu.Unlock()
		return nil, fmt.Errorf("attempt %d of %s is here already", d.Epoch, d.what())
	case old != nil && old.Epoch > d.Epoch:
		p.mu.Unlock()
		return nil, old.over(d.Epoch)
	}
	p.doors[o.key] = o
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	if old != nil && old.Replaced != nil {
		old.Replaced(d.Epoch)
	}
	return o, nil
}

// what names the purpose of a door, for messages.
func (d *Door) what() string {
	if d.Scope == "" {
		return fmt.Sprintf("the %s", d.Kind)
	}
	return fmt.Sprintf("the %s of group %q", d.Kind, d.Scope)
}

// over refuses an earlier epoch.
func (d *Door) over(epoch uint32) *Refusal {
	return Refuse("attempt %d of %s is over: this is attempt %d", epoch, d.what(), d.Epoch)
}

// Close closes the door, and returns when no call of Serve is under way. Connections that were
// welcomed stay. Closing again does nothing.
func (o *Opened) Close() {
	o.port.mu.Lock()
	if o.port.doors[o.key] == o {
		delete(o.port.doors, o.key)
	}
	o.shut = true
	for nc := range o.serving {
		nc.SetDeadline(time.Unix(1, 0))
	}
	o.port.mu.Unlock()
	o.calls.Wait()
}

// Caller is a connection at a door.
type Caller struct {
	net.Conn
	Hello Hello
	door  *Opened
	in    bool // it was welcomed
}

// Welcome admits the connection. If it fails, the connection cannot be used.
func (c *Caller) Welcome() error {
	if !c.door.done(c.Conn) {
		return RefuseLater("it is about to close")
	}
	c.in = true
	if err := answer(c.Conn, nil, nil); err != nil {
		return err
	}
	c.SetDeadline(time.Time{}) // if this fails, so does the next read
	return nil
}

// done removes a connection from those that Close of the door closes, and reports whether it
// was not closed before.
func (o *Opened) done(nc net.Conn) bool {
	o.port.mu.Lock()
	defer o.port.mu.Unlock()
	delete(o.serving, nc)
	return !o.shut
}

// door returns the door that a hello names, nil if there is none.
func (p *Port) door(g *greeting) *Opened {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.doors[doorKey{g.Kind, g.scope}]
}

// admit passes a connection that has proved itself to its door, or refuses it.
func (p *Port) admit(nc net.Conn, g *greeting) error {
	door, err := p.await(nc, g)
	if err != nil {
		answer(nc, err, nil)
		return err
	}
	defer door.calls.Done()
	defer door.done(nc)
	nc.SetDeadline(time.Now().Add(handshakeTimeout))
	c := &Caller{Conn: nc, Hello: g.Hello, door: door}
	c.Hello.Scope = door.Scope
	if err = door.Serve(c); err != nil && !c.in {
		answer(nc, err, nil)
	}
	return err
}

// await waits a little for the door of a hello to open, and registers the connection there.
func (p *Port) await(nc net.Conn, g *greeting) (*Opened, error) {
	var late <-chan time.Time
	for waiting := false; ; {
		p.mu.Lock()
		d, changed := p.doors[doorKey{g.Kind, g.scope}], p.changed
		if waiting {
			p.early--
		}
		switch {
		case d != nil && d.Epoch == g.Epoch:
			d.calls.Add(1)
			d.serving[nc] = struct{}{}
			p.mu.Unlock()
			return d, nil
		case d != nil && d.Epoch > g.Epoch:
			p.mu.Unlock()
			return nil, d.over(g.Epoch)
		case p.early >= maxEarly || p.closed:
			p.mu.Unlock()
			return nil, p.nobody(d, g)
		}
		p.early++
		waiting = true
		p.mu.Unlock()
		if late == nil {
			late = time.After(earlyWait)
		}
		select {
		case <-changed:
			continue
		case <-late:
		case <-p.ctx.Done():
		}
		p.mu.Lock()
		p.early--
		p.mu.Unlock()
		return nil, p.nobody(d, g)
	}
}

// nobody refuses a connection that came too early and may try again.
func (p *Port) nobody(d *Opened, g *greeting) *Refusal {
	if d != nil {
		return RefuseLater("this is still attempt %d of %s, not %d", d.Epoch, d.what(), g.Epoch)
	}
	if others := p.scopes(g.Kind); others != nil {
		return RefuseLater("nobody here expects such a %s: this is group %q", g.Kind, others[0])
	}
	return RefuseLater("nobody here expects a %s: has what it is for begun here, under the same name?", g.Kind)
}

// scopes are those of the doors of a kind, in order.
func (p *Port) scopes(k Kind) (scopes []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, d := range p.doors {
		if key.kind == k {
			scopes = append(scopes, d.Scope)
		}
	}
	slices.Sort(scopes)
	return scopes
}
