package peerlink

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// Endpoint accepts the connections of one kind and scope.
type Endpoint struct {
	Kind  Kind
	Scope string // as in Hello
	Epoch uint32

	// Serve is called, in a goroutine of its own, for each connection that has proved that it
	// knows the secret. It checks the hello. Then it either calls Welcome, after which the
	// connection belongs to the endpoint's owner, or returns an error, which is sent to the
	// other side before the connection is closed. Serve must return within the time limit of a
	// handshake.
	Serve func(*Caller) error

	// Replaced, if not nil, is called when an endpoint of a later epoch replaces this one. It
	// must not wait.
	Replaced func(epoch uint32)

	// Distrust, if not nil, is called when a connection for this endpoint did not prove that it
	// knows the secret.
	Distrust func(from net.Addr, err error)
}

// endpointKey identifies an endpoint.
type endpointKey struct {
	kind  Kind
	scope name
}

// Opened is an open endpoint. The caller of Open must close it.
type Opened struct {
	Endpoint
	port    *Port
	key     endpointKey
	calls   sync.WaitGroup        // running calls of Serve
	serving map[net.Conn]struct{} // connections before Welcome (guarded by port.mu)
	shut    bool                  // Close was called (guarded by port.mu)
}

// Open opens an endpoint. It replaces an open endpoint of an earlier epoch with the same kind
// and scope. If an endpoint of the same or a later epoch is open, Open returns an error.
func (p *Port) Open(d Endpoint) (*Opened, error) {
	o := &Opened{Endpoint: d, port: p, key: endpointKey{d.Kind, nameOf(d.Scope)}, serving: make(map[net.Conn]struct{})}
	p.mu.Lock()
	old := p.endpoints[o.key]
	switch {
	case p.closed:
		p.mu.Unlock()
		return nil, ErrClosed
	case old != nil && old.Epoch == d.Epoch:
		p.mu.Unlock()
		return nil, fmt.Errorf("attempt %d of %s is here already", d.Epoch, d.what())
	case old != nil && old.Epoch > d.Epoch:
		p.mu.Unlock()
		return nil, old.refuseEpoch(d.Epoch)
	}
	p.endpoints[o.key] = o
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	if old != nil && old.Replaced != nil {
		old.Replaced(d.Epoch)
	}
	return o, nil
}

// what returns a text that names the purpose of the endpoint, for errors.
func (d *Endpoint) what() string {
	if d.Scope == "" {
		return fmt.Sprintf("the %s", d.Kind)
	}
	return fmt.Sprintf("the %s of group %q", d.Kind, d.Scope)
}

// refuseEpoch returns the refusal of a connection of an earlier epoch.
func (d *Endpoint) refuseEpoch(epoch uint32) *Refusal {
	return Refuse("attempt %d of %s is over: this is attempt %d", epoch, d.what(), d.Epoch)
}

// Close closes the endpoint, and returns when all calls of Serve have returned. Connections
// after Welcome stay open. Closing again does nothing.
func (o *Opened) Close() {
	o.port.mu.Lock()
	if o.port.endpoints[o.key] == o {
		delete(o.port.endpoints, o.key)
	}
	o.shut = true
	for nc := range o.serving {
		nc.SetDeadline(time.Unix(1, 0))
	}
	o.port.mu.Unlock()
	o.calls.Wait()
}

// Caller is an accepted connection, as Serve gets it.
type Caller struct {
	net.Conn
	Hello    Hello
	endpoint *Opened
	in       bool // Welcome was called
}

// Welcome admits the connection. If it fails, the connection cannot be used.
func (c *Caller) Welcome() error {
	if !c.endpoint.done(c.Conn) {
		return RefuseLater("it is about to close")
	}
	c.in = true
	if err := answer(c.Conn, nil, nil); err != nil {
		return err
	}
	c.SetDeadline(time.Time{}) // if this fails, so does the next read
	return nil
}

// done removes a connection from serving. It returns false if the endpoint was closed before.
func (o *Opened) done(nc net.Conn) bool {
	o.port.mu.Lock()
	defer o.port.mu.Unlock()
	delete(o.serving, nc)
	return !o.shut
}

// endpoint returns the open endpoint with the kind and scope of g, or nil if no such endpoint
// is open.
func (p *Port) endpoint(g *greeting) *Opened {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.endpoints[endpointKey{g.Kind, g.scope}]
}

// admit passes a connection that has proved that it knows the secret to its endpoint, or
// refuses it.
func (p *Port) admit(nc net.Conn, g *greeting) error {
	endpoint, err := p.await(nc, g)
	if err != nil {
		answer(nc, err, nil)
		return err
	}
	defer endpoint.calls.Done()
	defer endpoint.done(nc)
	nc.SetDeadline(time.Now().Add(handshakeTimeout))
	c := &Caller{Conn: nc, Hello: g.Hello, endpoint: endpoint}
	c.Hello.Scope = endpoint.Scope
	if err = endpoint.Serve(c); err != nil && !c.in {
		answer(nc, err, nil)
	}
	return err
}

// await waits, for at most earlyWait, until the endpoint of the hello is open, and registers
// the connection there.
func (p *Port) await(nc net.Conn, g *greeting) (*Opened, error) {
	var late <-chan time.Time
	for waiting := false; ; {
		p.mu.Lock()
		d, changed := p.endpoints[endpointKey{g.Kind, g.scope}], p.changed
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
			return nil, d.refuseEpoch(g.Epoch)
		case p.early >= maxEarly || p.closed:
			p.mu.Unlock()
			return nil, p.refuseEarly(d, g)
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
		return nil, p.refuseEarly(d, g)
	}
}

// refuseEarly returns the refusal of a connection whose endpoint is not open. Another try may
// succeed. d is the open endpoint of an earlier epoch, or nil if there is none.
func (p *Port) refuseEarly(d *Opened, g *greeting) *Refusal {
	if d != nil {
		return RefuseLater("this is still attempt %d of %s, not %d", d.Epoch, d.what(), g.Epoch)
	}
	if others := p.scopes(g.Kind); others != nil {
		return RefuseLater("nobody here expects such a %s: this is group %q", g.Kind, others[0])
	}
	return RefuseLater("nobody here expects a %s: has the operation begun here, under the same name?", g.Kind)
}

// scopes returns the scopes of the open endpoints of a kind, sorted.
func (p *Port) scopes(k Kind) (scopes []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, d := range p.endpoints {
		if key.kind == k {
			scopes = append(scopes, d.Scope)
		}
	}
	slices.Sort(scopes)
	return scopes
}
