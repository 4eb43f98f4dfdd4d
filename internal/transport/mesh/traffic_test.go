package mesh

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/superstep-ml/superstep/internal/overdue"
)

// content returns the n bytes of message i on a channel from one rank to another. Sender and
// receiver both compute them.
func content(from, to, channel, i, n int) []byte {
	seed := uint64(from)<<48 | uint64(to)<<32 | uint64(channel)<<16 | uint64(i)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 32), byte(seed >> 48)})
	b := make([]byte, n)
	_, _ = r.Read(b)
	return b
}

// sizes draws a message length. Many lengths are near the thresholds at which the way of
// sending changes.
func sizes(r *rand.Rand, limit int) int {
	if r.IntN(4) == 0 {
		return 0
	}
	return min(limit, r.IntN(1<<r.IntN(20)))
}

func headerOf(from, to, channel, i, n int) Header {
	return Header{
		Seq: uint64(i), Hash: uint64(from)<<32 | uint64(to), Lane: uint16(channel), Step: uint16(i),
		Segment: uint32(i), Offset: uint64(i) << 33, Length: uint32(n), Absent: n == 0 && i%2 == 0,
	}
}

// sendAll sends count messages, each by Send or by Post at random.
func sendAll(c Conn, from, to, channel, count, limit int, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 1))
	choose := rand.New(rand.NewPCG(seed, 2))
	for i := range count {
		b := content(from, to, channel, i, sizes(r, limit))
		h := headerOf(from, to, channel, i, len(b))
		how := c.Send
		if choose.IntN(2) == 0 {
			how = c.Post
		}
		if err := how(&h, b); err != nil {
			return fmt.Errorf("sending message %d from %d to %d: %w", i, from, to, err)
		}
		clear(b) // the caller may overwrite the payload after Send or Post
	}
	return nil
}

// receiveAll receives the messages of sendAll in pieces of random lengths, and checks every
// header and byte.
func receiveAll(c Conn, from, to, channel, count, limit int, seed uint64) error {
	r := rand.New(rand.NewPCG(seed, 1))
	pieces := rand.New(rand.NewPCG(seed, 3))
	for i := range count {
		want := content(from, to, channel, i, sizes(r, limit))
		var h Header
		if err := c.Next(&h); err != nil {
			return fmt.Errorf("receiving message %d from %d to %d: %w", i, from, to, err)
		}
		if h != headerOf(from, to, channel, i, len(want)) {
			return fmt.Errorf("message %d from %d to %d has the header %+v", i, from, to, h)
		}
		got := make([]byte, len(want))
		for at := 0; at < len(got); {
			n := min(len(got)-at, 1+pieces.IntN(len(got)))
			if b, ok := c.(Borrower); ok && pieces.IntN(2) == 0 {
				lent, err := b.Borrow(n)
				if err != nil {
					return err
				}
				copy(got[at:], lent)
				b.Return()
			} else if err := c.Read(got[at : at+n]); err != nil {
				return fmt.Errorf("reading message %d from %d to %d: %w", i, from, to, err)
			}
			at += n
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("message %d from %d to %d has other bytes than were sent", i, from, to)
		}
	}
	return nil
}

// traffic makes all ranks send to all other ranks, on several channels concurrently, and checks
// the received messages.
func traffic(t require.TestingT, nodes []Node, channels, count, limit int, seed uint64) {
	defer overdue.Watch("all messages of all ranks")()
	var g errgroup.Group
	for _, n := range nodes {
		var routes []Route
		for peer := range nodes {
			for ch := range channels {
				if peer != n.Rank() {
					routes = append(routes, Route{peer, ch})
				}
			}
		}
		g.Go(func() error {
			conns, err := n.Open(context.Background(), routes)
			if err != nil {
				return err
			}
			var each errgroup.Group
			for i, r := range routes {
				each.Go(func() error {
					return sendAll(conns[i], n.Rank(), r.Peer, r.Channel, count, limit, seed)
				})
				each.Go(func() error {
					return receiveAll(conns[i], r.Peer, n.Rank(), r.Channel, count, limit, seed)
				})
			}
			return each.Wait()
		})
	}
	require.NoError(t, g.Wait())
}

// open opens one route. If it cannot open the route, the test fails.
func open(t testing.TB, n Node, peer, channel int) Conn {
	conns, err := n.Open(context.Background(), []Route{{peer, channel}})
	require.NoError(t, err)
	return conns[0]
}

// player is one side of a ping-pong. It reuses its buffers, as some tests count allocations.
type player struct {
	conn    Conn
	buf     []byte
	in, out Header
}

func newPlayer(c Conn, size int) *player {
	return &player{conn: c, buf: make([]byte, size), out: Header{Length: uint32(size)}}
}

// play sends and receives a message count times. If first is false, it receives before it
// sends.
func (p *player) play(count int, first bool) error {
	for range count {
		if first {
			if err := p.conn.Send(&p.out, p.buf); err != nil {
				return err
			}
		}
		if err := p.receive(); err != nil {
			return err
		}
		if !first {
			if err := p.conn.Send(&p.out, p.buf); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *player) receive() error {
	if err := p.conn.Next(&p.in); err != nil {
		return err
	}
	return p.conn.Read(p.buf)
}

// stream sends count messages of size bytes from a to b.
func stream(a, b Conn, size, count int) error {
	var g errgroup.Group
	g.Go(func() error {
		h, payload := Header{Length: uint32(size)}, make([]byte, size)
		for range count {
			if err := a.Send(&h, payload); err != nil {
				return err
			}
		}
		return nil
	})
	p := newPlayer(b, size)
	for range count {
		if err := p.receive(); err != nil {
			return err
		}
	}
	return g.Wait()
}
