// Package middlebox, which is for tests, relays TCP connections between processes and damages
// bytes. It simulates faulty memory, firmware or software on the path between the processes.
// TCP's own checksum does not detect such damage.
//
//	box := middlebox.New(middlebox.Draw(seed, 4, 2000))
//	defer box.Close()
//	address, err := box.Before(listener.Addr().String()) // processes connect to address
//	…
//	if box.Struck() { … }
//
// Draw draws a fault: its kind, its direction, the offset of its first byte, and its
// connection. The fault depends only on the arguments of Draw. Connections are numbered in the
// order in which the box accepts them.
package middlebox

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is a kind of fault.
type Kind uint8

// These are the kinds of faults.
const (
	Flip   Kind = iota // flips a bit
	Zero               // sets bytes to zero
	Lose               // leaves out bytes
	Repeat             // sends bytes twice
	Swap               // exchanges bytes with the same number of bytes after them
	Hold               // delays bytes
	Cut                // ends the connection
	kinds
)

// String returns the name of the kind.
func (k Kind) String() string {
	return [...]string{"flip", "zero", "lose", "repeat", "swap", "hold", "cut"}[k]
}

// Fault is a single fault.
type Fault struct {
	Kind       Kind
	Connection int           // number of the connection, from 0
	Back       bool          // the damaged bytes are sent by the listening side
	At         int64         // offset of the first damaged byte among the bytes of its direction
	Length     int           // number of damaged bytes
	Bit        uint8         // number of the flipped bit, for Flip
	Delay      time.Duration // length of the delay, for Hold
}

// String describes the fault.
func (f Fault) String() string {
	way := "there"
	if f.Back {
		way = "back"
	}
	return fmt.Sprintf("%s %d bytes at %d, %s, of connection %d", f.Kind, f.Length, f.At, way, f.Connection)
}

// Draw draws a fault of one of the first connections. connections is their number. The fault is
// in one direction of the connection, at an offset that is less than bytes. Small offsets are
// more likely, as headers with lengths are frequent at the beginning of a connection.
func Draw(seed uint64, connections int, bytes int64) Fault {
	r := rand.New(rand.NewPCG(seed, 0xb0c5))
	f := Fault{
		Kind: Kind(r.IntN(int(kinds))), Connection: r.IntN(connections), Back: r.IntN(3) == 0,
		At: int64(float64(bytes) * r.Float64() * r.Float64()), Length: 1, Bit: uint8(r.IntN(8)), Delay: 20 * time.Millisecond,
	}
	if f.Kind != Flip {
		f.Length = 1 + r.IntN(1<<r.IntN(8))
	}
	return f
}

// Box relays connections and inserts one fault.
type Box struct {
	fault  Fault
	made   atomic.Int64 // number of connections
	struck atomic.Bool
	work   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   []io.Closer
}

// New returns a box that inserts the fault f.
func New(f Fault) *Box { return &Box{fault: f} }

// Struck reports whether the fault has happened, so that bytes have arrived changed, late, or
// not at all.
func (b *Box) Struck() bool { return b.struck.Load() }

// Before listens, and relays every connection that it accepts to the given address. It returns
// the address on which it listens.
func (b *Box) Before(address string) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	if !b.keep(l) {
		return "", net.ErrClosed
	}
	b.work.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", address)
			if err != nil {
				near.Close()
				continue
			}
			number := int(b.made.Add(1)) - 1
			if !b.keep(near) || !b.keep(far) {
				return
			}
			for _, way := range []struct {
				to, from net.Conn
				back     bool
			}{{far, near, false}, {near, far, true}} {
				p := &relay{Box: b, to: way.to.(*net.TCPConn), from: way.from.(*net.TCPConn), armed: number == b.fault.Connection && way.back == b.fault.Back}
				b.work.Go(p.run)
			}
		}
	})
	return l.Addr().String(), nil
}

// keep records c for Close. If the box is closed already, keep closes c and returns false.
func (b *Box) keep(c io.Closer) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		c.Close()
		return false
	}
	b.open = append(b.open, c)
	return true
}

// Close closes all listeners and connections, and waits until all relaying has ended.
func (b *Box) Close() {
	b.mu.Lock()
	b.closed = true
	for _, c := range b.open {
		c.Close()
	}
	b.mu.Unlock()
	b.work.Wait()
}

// relay copies the bytes of one direction of a connection.
type relay struct {
	*Box
	to, from *net.TCPConn
	armed    bool
}

func (p *relay) run() {
	var err error
	if p.armed {
		err = p.strike()
	}
	if err == nil {
		_, err = io.Copy(p.to, p.from)
	}
	p.to.CloseWrite()
	if err != nil { // this direction cannot be written any more, so the relay stops reading from its sender
		p.from.Close()
	}
}

// strike relays the bytes before the fault, and then inserts the fault.
func (p *relay) strike() error {
	f := &p.fault
	if _, err := io.CopyN(p.to, p.from, f.At); err != nil {
		return err
	}
	if f.Kind == Cut {
		p.struck.Store(true)
		p.from.Close()
		p.to.Close()
		return net.ErrClosed
	}
	n := f.Length
	if f.Kind == Swap {
		n *= 2
	}
	b := make([]byte, n)
	// The sender may wait for an answer before it has sent all bytes that the fault damages. So
	// after a pause, the fault is inserted into the bytes that have arrived.
	for got := 0; got < n; {
		k, err := p.from.Read(b[got:])
		if k > 0 && got+k < n && f.Kind != Lose {
			p.from.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		}
		if got += k; err != nil {
			p.from.SetReadDeadline(time.Time{})
			b = b[:got]
			if got == 0 || f.Kind == Swap && got < 2 {
				_, wrong := p.to.Write(b)
				return wrong
			}
			break
		}
	}
	p.from.SetReadDeadline(time.Time{})
	was := string(b)
	switch f.Kind {
	case Flip:
		b[0] ^= 1 << f.Bit
	case Zero:
		clear(b)
	case Lose:
		b = nil
	case Repeat:
		b = append(b, b...)
	case Swap:
		h := len(b) / 2
		b = append(append(append([]byte(nil), b[h:2*h]...), b[:h]...), b[2*h:]...)
	case Hold:
		time.Sleep(f.Delay)
		p.struck.Store(true)
	}
	if string(b) != was {
		p.struck.Store(true)
	}
	_, err := p.to.Write(b)
	return err
}
