package middlebox

import (
	"io"
	"net"
	"sync"
	"time"
)

// Valve relays connections to one address until a test cuts them, or holds or slows what they carry.
// It simulates a network that fails for some time.
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
	rate    int           // bytes per second of each direction of a connection; 0 without a limit
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
func NewValve(address string) (*Valve, error) { return NewValveAt("127.0.0.1:0", address) }

// NewValveAt is like NewValve, with the address on which the valve listens.
func NewValveAt(listen, address string) (*Valve, error) {
	l, err := net.Listen("tcp", listen)
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
func (v *Valve) Open() { v.set(valveOpen, 0) }

// Slow makes the valve relay at most the given number of bytes per second in each direction of a
// connection.
func (v *Valve) Slow(rate int) { v.set(valveOpen, rate) }

// Hold stops all bytes. Connections stay as they are, also new ones, but carry nothing.
func (v *Valve) Hold() { v.set(valveHeld, 0) }

// Cut ends all connections with a reset. New ones end in the same way until Open is called.
func (v *Valve) Cut() { v.set(valveCut, 0) }

// Close ends all connections, and waits until all relaying has ended.
func (v *Valve) Close() {
	v.set(valveClosed, 0)
	v.l.Close()
	v.work.Wait()
}

// set changes the state. A valve that is closed stays closed.
func (v *Valve) set(s valveState, rate int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.state == valveClosed {
		return
	}
	v.state, v.rate = s, rate
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

// pass waits while the valve is held, and as long as n bytes take at its rate. It reports whether the
// valve is open.
func (v *Valve) pass(n int) bool {
	began := time.Now()
	for {
		v.mu.Lock()
		state, rate, changed := v.state, v.rate, v.changed
		v.mu.Unlock()
		var wait <-chan time.Time
		switch {
		case state == valveCut || state == valveClosed:
			return false
		case state == valveOpen && rate == 0:
			return true
		case state == valveOpen:
			left := time.Until(began.Add(time.Duration(n) * time.Second / time.Duration(rate)))
			if left <= 0 {
				return true
			}
			wait = time.After(left)
		}
		select {
		case <-wait:
		case <-changed:
		}
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
	if !v.pass(0) {
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
		if !v.pass(n) {
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
