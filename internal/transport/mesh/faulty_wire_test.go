package mesh

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/overdue"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/tlstest"
	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// wirePair connects two ranks over TCP. The faults of the rules are inserted on the wire.
func wirePair(t testing.TB, checksum bool, seed uint64, rules ...FaultRule) (nodes []Node, ends [2]Conn) {
	p := FaultPlan{seed, rules}
	_, nodes = cluster(t, oneEach(2), func(cfg *TCPConfig) {
		cfg.NoChecksum = !checksum
		require.NoError(t, p.OnWire(cfg))
	})
	ends[0], ends[1] = couple(t, nodes[0], nodes[1], 0)
	return nodes, ends
}

// receive receives messages until an error occurs or until it has n messages.
func receive(c Conn, n int) (all []came, err error) {
	defer overdue.Watch("messages of another rank, or an error")()
	for range n {
		var m came
		if err = c.Next(&m.Header); err != nil {
			return all, err
		}
		m.data = make([]byte, m.Length)
		if err = c.Read(m.data); err != nil {
			return all, err
		}
		all = append(all, m)
	}
	return all, nil
}

// post posts the messages with numbers first to last. It ignores errors, as the group may have
// ended. Tests of lost messages post more messages than they receive, so that a receiver that
// does not detect the loss does not wait for ever.
func post(c Conn, first, last int) {
	for k := first; k <= last; k++ {
		h, b := numbered(k)
		if k%2 == 0 {
			_ = c.Post(&h, b)
		} else {
			_ = c.Send(&h, b)
		}
	}
}

func TestFaultsOnTheWire(t *testing.T) {
	want := func(k int) came { h, b := numbered(k); return came{h, b} }
	all := func(ks ...int) (m []came) {
		for _, k := range ks {
			m = append(m, want(k))
		}
		return m
	}
	for _, c := range []struct {
		rule     FaultRule
		checksum bool
		comes    []came // messages that must be received before the error or the end
		says     string // text that the error must contain; "" if there must be no error
	}{
		{FaultRule{Kind: Delay, From: 0, To: 1, Channel: Any, Out: 1, Of: 2, Delay: time.Millisecond}, false, all(1, 2, 3, 4, 5), ""},
		{FaultRule{Kind: Corrupt, From: 1, To: 0, Channel: Any, Out: 1, Of: 1}, true, all(1, 2, 3, 4, 5), ""},
		{nth(Drop, 0, 1, 3), false, all(1, 2), "sent message 2 of channel 0, which was damaged in transit: number 3 came in its place"},
		{nth(Duplicate, 0, 1, 3), false, all(1, 2, 3), "sent message 3 of channel 0, which was damaged in transit: number 2 came in its place"},
		{FaultRule{Kind: Corrupt, Header: true, From: 0, To: 1, Channel: Any, Message: 3}, false, all(1, 2), "sent message 2 of channel 0, which was damaged in transit: its header has the checksum"},
		{nth(Corrupt, 0, 1, 3), true, all(1, 2), "bytes), which was damaged in transit: its payload has the checksum"},
		{nth(Truncate, 0, 1, 3), true, all(1, 2), "bytes), which was damaged in transit: its payload has the checksum"},
		{nth(Cut, 0, 1, 3), false, all(1, 2), "its connection"},
	} {
		for seed := range uint64(8) {
			text := FaultPlan{seed, []FaultRule{c.rule}}.String()
			_, ends := wirePair(t, c.checksum, seed, c.rule)
			done := make(chan struct{})
			go func() {
				defer close(done)
				post(ends[0], 1, 6)
			}()
			n := 5
			if c.says == "" {
				n = len(c.comes)
			}
			got, err := receive(ends[1], n)
			<-done
			if c.rule.Kind == Cut { // the sender may report the cut before the receiver has received all messages
				require.LessOrEqual(t, len(got), len(c.comes), text)
				require.Equal(t, append([]came(nil), c.comes[:len(got)]...), got, text)
			} else {
				require.Equal(t, c.comes, got, text)
			}
			if c.says == "" {
				require.NoError(t, err, text)
				continue
			}
			require.ErrorContains(t, err, c.says, text)
			var lost *membership.PeerError
			require.ErrorAs(t, err, &lost, text)
			require.Equal(t, 1, lost.Rank+lost.Reporter, "%s: one of the two ranks must report the other: %v", text, err)
		}
	}
}

// TestLongPayloadsAreChecked requires that damage is detected in a payload that is long enough
// to be read directly into its destination, piece by piece.
func TestLongPayloadsAreChecked(t *testing.T) {
	const n = 300_000
	for seed := range uint64(4) {
		_, ends := wirePair(t, true, seed, nth(Corrupt, 0, 1, 2))
		sent := make(chan error, 1)
		go func() {
			payload := make([]byte, n)
			for k := range uint64(2) {
				if err := ends[0].Send(&Header{Seq: 1, Segment: uint32(k), Offset: k * n, Length: n}, payload); err != nil {
					sent <- err
					return
				}
			}
			sent <- nil
		}()
		var h Header
		buf := make([]byte, n)
		require.NoError(t, ends[1].Next(&h))
		require.NoError(t, ends[1].Read(buf))
		require.NoError(t, ends[1].Next(&h))
		var err error
		for got := 0; got < n && err == nil; got += n / 3 {
			err = ends[1].Read(buf[:n/3])
		}
		require.ErrorIs(t, err, membership.ErrDamaged)
		require.ErrorContains(t, err, "sent message 1 of channel 0 (operation 1, lane 0, step 0, segment 1, offset 300000, 300000 bytes), which was damaged in transit")
		<-sent
	}
}

// flippedWire flips a bit of the written byte with the number at, counted from 0.
type flippedWire struct {
	net.Conn
	at int
}

func (w *flippedWire) Write(b []byte) (int, error) {
	if w.at >= 0 && w.at < len(b) {
		b = bytes.Clone(b)
		b[w.at] ^= 0x10
	}
	w.at -= len(b)
	return w.Conn.Write(b)
}

// TestWhereTheChecksumIs sends payloads with lengths around smallWrite and summedWrite, at
// which the way of writing changes. In each payload it flips a bit of the first, the middle or
// the last byte, of a byte beside the boundary of a part, or of the checksum that follows the
// payload, and requires that the damage is detected. At -1 no bit is flipped, and there must be
// no error.
func TestWhereTheChecksumIs(t *testing.T) {
	for _, n := range []int{1, smallWrite, smallWrite + 1, summedWrite - 1, summedWrite, summedWrite + 1, 2*summedWrite + 5} {
		places := []int{-1, headerBytes, headerBytes + n/2, headerBytes + n - 1}
		if n > summedWrite {
			places = append(places, headerBytes+min(n, summedWrite)-1, headerBytes+n, headerBytes+n+trailerBytes-1)
		}
		for _, at := range places {
			for _, posts := range []bool{false, true} {
				if posts && at >= headerBytes+n {
					continue // skipped: a posted message has its checksum in the header
				}
				_, nodes := cluster(t, oneEach(2), func(cfg *TCPConfig) {
					cfg.wire = func(_ context.Context, c net.Conn, from int, _ Route) net.Conn {
						if from == 0 {
							return &flippedWire{c, at}
						}
						return c
					}
				})
				a, b := couple(t, nodes[0], nodes[1], 0)
				payload := bytes.Repeat([]byte("payload"), n/7+1)[:n]
				sent := make(chan error, 1)
				go func() {
					write := a.Send
					if posts {
						write = a.Post
					}
					for k := range uint64(2) {
						if err := write(&Header{Seq: k + 1, Length: uint32(n)}, payload); err != nil {
							sent <- err
							return
						}
					}
					sent <- nil
				}()
				got, err := receive(b, 2)
				what := fmt.Sprintf("%d bytes, byte %d flipped, posts %t", n, at, posts)
				if at >= 0 {
					require.ErrorIs(t, err, membership.ErrDamaged, what)
					require.ErrorContains(t, err, "sent message 0 of channel 0 (operation 1", what)
					require.Empty(t, got, what)
					<-sent
					continue
				}
				require.NoError(t, err, what)
				require.NoError(t, <-sent, what)
				for k, m := range got {
					require.Equal(t, uint64(k+1), m.Seq, what)
					require.Equal(t, payload, m.data, what)
				}
			}
		}
	}
}

// gapWire drops written bytes whose offsets are in [from, to).
type gapWire struct {
	net.Conn
	from, to, at int
}

func (w *gapWire) Write(b []byte) (int, error) {
	n, at := len(b), w.at
	w.at += n
	before, behind := b[:max(0, min(n, w.from-at))], b[max(0, min(n, w.to-at)):]
	for _, part := range [][]byte{before, behind} {
		if _, err := w.Conn.Write(part); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// TestManyMessagesAreMissed requires that the loss of messages is detected even if their number
// is a multiple of 2^8 or 2^16, after which shorter message numbers would repeat.
func TestManyMessagesAreMissed(t *testing.T) {
	for _, lost := range []int{1, 1 << 8, 1 << 16, 1 << 17} {
		_, nodes := cluster(t, oneEach(2), func(cfg *TCPConfig) {
			cfg.wire = func(_ context.Context, c net.Conn, from int, _ Route) net.Conn {
				return &gapWire{Conn: c, from: headerBytes, to: (1 + lost) * headerBytes}
			}
		})
		a, b := couple(t, nodes[0], nodes[1], 0)
		for range lost + 2 {
			require.NoError(t, a.Send(&Header{Seq: 1}, nil))
		}
		require.NoError(t, b.Next(new(Header)))
		err := b.Next(new(Header))
		require.ErrorIs(t, err, membership.ErrDamaged)
		require.ErrorContains(t, err, fmt.Sprintf("number %d came in its place: messages were lost, repeated or reordered", lost+1))
	}
}

// TestNumbersWrapRound requires that no damage is reported when message numbers wrap around,
// and that the loss of a message at this point is detected.
func TestNumbersWrapRound(t *testing.T) {
	for _, first := range []uint64{1<<16 - 2, 1<<32 - 2, 1<<48 - 2} {
		for _, rules := range [][]FaultRule{nil, {nth(Drop, 0, 1, 2)}, {nth(Drop, 0, 1, 3)}, {nth(Duplicate, 0, 1, 2)}} {
			_, ends := wirePair(t, true, 0, rules...)
			ends[0].(*tcpConn).sent, ends[1].(*tcpConn).number = uint32(first), first
			post(ends[0], 1, 6)
			got, err := receive(ends[1], 5)
			if rules == nil {
				require.NoError(t, err)
				for k, m := range got {
					h, b := numbered(k + 1)
					require.Equal(t, came{h, b}, m)
				}
				continue
			}
			require.ErrorIs(t, err, membership.ErrDamaged)
			require.ErrorContains(t, err, "came in its place")
		}
	}
}

// TestShortHeaderOnTheWire requires that a valid header whose length is too small is accepted,
// as only the executor knows the right length. The rest of the payload must then be refused, as
// it is not a message.
func TestShortHeaderOnTheWire(t *testing.T) {
	_, ends := wirePair(t, false, 0, FaultRule{Kind: Truncate, Header: true, From: 0, To: 1, Channel: Any, Message: 3})
	post(ends[0], 1, 5)
	got, err := receive(ends[1], 5)
	require.ErrorIs(t, err, membership.ErrDamaged)
	require.Len(t, got, 3)
	_, b := numbered(3)
	require.Less(t, int(got[2].Length), len(b))
	require.Equal(t, b[:got[2].Length], got[2].data)
}

// TestWithoutChecksumsPayloadsMayBeWrong requires that, without checksums, a corrupted payload
// is delivered, and that a truncated payload is delivered wrongly before the damage is
// reported.
func TestWithoutChecksumsPayloadsMayBeWrong(t *testing.T) {
	_, ends := wirePair(t, false, 0, nth(Corrupt, 0, 1, 3))
	post(ends[0], 1, 5)
	got, err := receive(ends[1], 5)
	require.NoError(t, err)
	_, b := numbered(3)
	require.Equal(t, 1, flipped(b, got[2].data))

	_, ends = wirePair(t, false, 0, nth(Truncate, 0, 1, 3))
	post(ends[0], 1, 5)
	got, err = receive(ends[1], 5)
	require.ErrorIs(t, err, membership.ErrDamaged)
	require.Len(t, got, 3)
	require.NotEqual(t, b, got[2].data)
}

// TestFaultsUnderTLS requires that with TLS a plan changes the plaintext and not the encrypted
// bytes.
func TestFaultsUnderTLS(t *testing.T) {
	config := tlstest.NewConfig(t)
	p := FaultPlan{Rules: []FaultRule{{Kind: Corrupt, Header: true, From: 0, To: 1, Channel: Any, Message: 3}}}
	_, nodes := clusterAt(t, oneEach(2), func(c *peerlink.Config) { c.TLS = config }, func(cfg *TCPConfig) {
		require.NoError(t, p.OnWire(cfg))
	})
	a, b := couple(t, nodes[0], nodes[1], 0)
	post(a, 1, 5)
	got, err := receive(b, 5)
	require.ErrorIs(t, err, membership.ErrDamaged)
	require.Len(t, got, 2)
}
