package middlebox

import (
	"io"
	"net"
	"sync"
)

// Valve relays connections to one address until a test cuts them or holds what they carry. It
// simulates a network that fails for some time.
//
//	valve, err := middlebox.NewValve(address)
//	defer valve.Close()
//	… // processes connect to valve.Address()
//	valve.Hold()
//	… // the processes hear nothing of each other, and no connection ends
//	valve.Open()
type Valve struct {
	to   string
	l    net.Listener
	work sync.WaitGroup

	mu      sync.Mutex
	state   valveState
	changed chan struct{} // closed when state changes
	open    map[io.Closer]struct{}
}

type valveState int

const (
	valveOpen valveState = iota
	valveHeld
	valveCut
	valveClosed
)

// NewValve listens on a port of this machine, and relays every connection that it accepts to the
// given address.
func NewValve(address string) (*Valve, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	v := &Valve{to: address, l: l, changed: make(chan struct{}), open: make(map[io.Closer]struct{})}
	v.work.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			v.work.Go(func() { v.relay(near.(*net.TCPConn)) })
		}
	})
	return v, nil
}

// Address returns the address on which the valve listens.
func (v *Valve) Address() string { return v.l.Addr().String() }

// Open makes the valve relay again. Bytes that were held are delivered first.
func (v *Valve) Open() { v.set(valveOpen) }

// Hold stops all bytes. Connections stay as they are, also new ones, but carry nothing.
func (v *Valve) Hold() { v.set(valveHeld) }

// Cut ends all connections with a reset. New ones end in the same way until Open is called.
func (v *Valve) Cut() { v.set(valveCut) }

// Close ends all connections, and waits until all relaying has ended.
func (v *Valve) Close() {
	v.set(valveClosed)
	v.l.Close()
	v.work.Wait()
}

// set changes the state. A valve that is closed stays closed.
func (v *Valve) set(s valveState) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state == valveClosed {
		return
	}
	v.state = s
	close(v.changed)
	v.changed = make(chan struct{})
	if s == valveCut || s == valveClosed {
		for c := range v.open {
			reset(c)
		}
		clear(v.open)
	}
}

// reset closes c. The other side of a TCP connection gets a reset.
func reset(c io.Closer) {
	if conn, ok := c.(*net.TCPConn); ok {
		conn.SetLinger(0)
	}
	c.Close()
}

// pass waits while the valve is held, and reports whether it is open.
func (v *Valve) pass() bool {
	for {
		v.mu.Lock()
		state, changed := v.state, v.changed
		v.mu.Unlock()
		if state != valveHeld {
			return state == valveOpen
		}
		<-changed
	}
}

// keep records a connection that Cut and Close must end. It resets the connection, and returns
// false, if they were called already.
func (v *Valve) keep(c io.Closer) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state == valveCut || v.state == valveClosed {
		reset(c)
		return false
	}
	v.open[c] = struct{}{}
	return true
}

// drop closes a connection that has ended on its own.
func (v *Valve) drop(c io.Closer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.open, c)
	c.Close()
}

// relay connects to the address of the valve, and relays both directions until both have ended.
func (v *Valve) relay(near *net.TCPConn) {
	if !v.keep(near) {
		return
	}
	defer v.drop(near)
	if !v.pass() {
		reset(near)
		return
	}
	conn, err := net.Dial("tcp", v.to)
	if err != nil {
		reset(near)
		return
	}
	far := conn.(*net.TCPConn)
	if !v.keep(far) {
		return
	}
	defer v.drop(far)
	var ways sync.WaitGroup
	ways.Go(func() { v.copy(far, near) })
	ways.Go(func() { v.copy(near, far) })
	ways.Wait()
}

// copy relays one direction. The end of the sender's bytes is relayed too, and an error ends
// both directions.
func (v *Valve) copy(to, from *net.TCPConn) {
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if !v.pass() {
			return // the connections are closed
		}
		if n > 0 {
			if _, wrong := to.Write(piece[:n]); wrong != nil {
				err = wrong
			}
		}
		switch err {
		case nil:
		case io.EOF:
			to.CloseWrite()
			return
		default:
			reset(to)
			reset(from)
			return
		}
	}
}
