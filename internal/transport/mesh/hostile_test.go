package mesh

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/tlstest"
	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// helloOf returns a hello from rank 0 to rank 1 that a mesh of size ranks accepts.
func helloOf(size int) peerlink.Hello {
	return peerlink.Hello{Kind: peerlink.Lane, Scope: "test", Epoch: 4, To: 1, Size: uint32(size), Sums: true}
}

// shake connects to the mesh at the given address, from a port that does not belong to the
// mesh, and sends hello h.
func shake(t *testing.T, address string, h peerlink.Hello) (net.Conn, error) {
	conn, err := newPort(t, nil).Dial(t.Context(), address, h)
	if err == nil {
		t.Cleanup(func() { conn.Close() })
	}
	return conn, err
}

func TestListenerRefuses(t *testing.T) {
	meshes, nodes := cluster(t, [][]int{{0}, {1, 2}}, nil)
	address := meshes[1].Address()
	couple(t, nodes[0], nodes[1], 3)
	for want, c := range map[string]struct {
		final  bool
		change func(*peerlink.Hello)
	}{
		`attempt 3 of the lane of group "test" is over: this is attempt 4`: {true, func(h *peerlink.Hello) { h.Epoch = 3 }},
		`this is still attempt 4 of the lane of group "test", not 5`:       {false, func(h *peerlink.Hello) { h.Epoch = 5 }},
		`nobody here expects such a lane: this is group "test"`:            {false, func(h *peerlink.Hello) { h.Scope = "other" }},
		"from rank 1 to rank 0":          {true, func(h *peerlink.Hello) { h.From, h.To = 1, 0 }},
		"from rank 0 to rank 0":          {true, func(h *peerlink.Hello) { h.To = 0 }},
		"to rank 4294967295":             {true, func(h *peerlink.Hello) { h.To = 1<<32 - 1 }},
		"rank 0 was started for 4 ranks": {true, func(h *peerlink.Hello) { h.Size = 4 }},
		"channel 1024":                   {true, func(h *peerlink.Hello) { h.Channel = MaxChannels }},
		"rank 1, which the process":      {true, func(h *peerlink.Hello) { h.From, h.To = 1, 2 }},
		"rank 0 sends data without checksums and rank 1 sends data with checksums": {true, func(h *peerlink.Hello) { h.Sums = false }},
		"connected to rank 1 on channel 3 already":                                 {true, func(h *peerlink.Hello) { h.Channel = 3 }},
	} {
		t.Run(want, func(t *testing.T) {
			h := helloOf(3)
			c.change(&h)
			_, err := shake(t, address, h)
			require.ErrorIs(t, err, peerlink.ErrRefused)
			require.ErrorContains(t, err, want)
			require.Equal(t, c.final, peerlink.IsFinal(err))
		})
	}
	h := helloOf(3)
	h.From, h.To = 1, 2
	_, err := shake(t, meshes[0].Address(), h)
	require.ErrorContains(t, err, "hosts ranks [0]")
	require.NoError(t, nodes[0].Err(), "a refused connection must not end the group")
}

// TestListenerTakesSecondHello requires that a second hello of the lower rank, which the lower
// rank sends if the first answer is lost, is accepted. The second connection must replace the
// first connection, which has not been claimed.
func TestListenerTakesSecondHello(t *testing.T) {
	meshes, nodes := cluster(t, oneEach(2), nil)
	first, err := shake(t, meshes[1].Address(), helloOf(2))
	require.NoError(t, err)
	ca := open(t, nodes[0], 1, 0)
	_, err = io.ReadAll(first)
	require.NoError(t, err, "closed")
	late, err := shake(t, meshes[1].Address(), helloOf(2)) // its try number is 0, and the try number of ca is 1
	require.NoError(t, err)
	_, err = io.ReadAll(late)
	require.NoError(t, err, "closed")
	cb := open(t, nodes[1], 0, 0)
	require.NoError(t, ca.Post(&Header{Seq: 3}, nil))
	var h Header
	require.NoError(t, cb.Next(&h))
	require.Equal(t, uint64(3), h.Seq)
}

// TestNewAttemptReplacesTheOldOne requires that a mesh of a later attempt at the same port ends
// the mesh of the earlier attempt and its connections.
func TestNewAttemptReplacesTheOldOne(t *testing.T) {
	meshes, nodes := cluster(t, oneEach(3), nil)
	_, cb := couple(t, nodes[0], nodes[1], 0)
	waiting := make(chan error, 1)
	go func() { waiting <- cb.Next(new(Header)) }()
	group := &localGroup{failed: make(chan struct{})}
	next, err := JoinTCP(t.Context(), TCPConfig{Size: 3, Ranks: []int{2}, Group: "test", Attempt: 5, Port: meshes[2].cfg.Port,
		Join: func(context.Context, string, func() []membership.State) (Group, []membership.Peer, error) {
			return group, []membership.Peer{{Ranks: []int{2}}}, nil
		}})
	require.NoError(t, err)
	defer next.Close()
	err = <-waiting
	require.ErrorIs(t, err, membership.ErrReplaced)
	require.EqualError(t, err, "a later attempt has begun, 5")
	h := helloOf(3)
	h.To = 2
	_, err = shake(t, meshes[2].Address(), h)
	require.ErrorContains(t, err, "attempt 4 of the lane of group \"test\" is over: this is attempt 5")
	h.Epoch = 5
	_, err = shake(t, meshes[2].Address(), h)
	require.NoError(t, err)
	require.NoError(t, group.Err())
}

func TestHostileMessages(t *testing.T) {
	good := &fence{attempt: 4, group: groupHash("test"), limit: 1 << 30, summed: true}
	frame := func(f *fence, h Header, change func(b []byte), payload ...byte) []byte {
		var b [headerBytes]byte
		f.encode(&b, &h, 0, payloadSum{sum: checksum.Of([]byte("good")).Bits()})
		if change != nil {
			change(b[:])
			binary.LittleEndian.PutUint32(b[headerSumFrom:], checksum.CRC32C(0, b[:headerSumFrom]))
		}
		return append(b[:], payload...)
	}
	old, foreign := *good, *good
	old.attempt, foreign.group = 3, 77
	cut := frame(good, Header{}, nil)
	cut[30] ^= 4
	for name, c := range map[string]struct {
		bytes []byte
		want  string
	}{
		"garbage":      {bytes.Repeat([]byte("garbage!"), 16), "its header has the checksum"},
		"protocol":     {frame(good, Header{}, func(b []byte) { b[0] = 9 }), "speaks another protocol"},
		"version":      {frame(good, Header{}, func(b []byte) { b[versionAt] = 9 }), "version 9"},
		"flags":        {frame(good, Header{}, func(b []byte) { b[flagsAt] = 0x80 }), "flags 0x80"},
		"number":       {frame(good, Header{}, func(b []byte) { b[12] = 1 }), "number 1 came in its place"},
		"high number":  {frame(good, Header{}, func(b []byte) { b[14] = 1 }), "number 65536 came in its place"},
		"no checksum":  {frame(good, Header{}, func(b []byte) { b[flagsAt], b[56], b[57], b[58], b[59] = 0, 0, 0, 0, 0 }), "its payload has a checksum: false, agreed was: true"},
		"damaged":      {cut, "its header has the checksum"},
		"old attempt":  {frame(&old, Header{}, nil), "attempt 3, which is over: attempt 4 runs"},
		"group":        {frame(&foreign, Header{}, nil), "another group"},
		"huge length":  {frame(good, Header{Length: 1<<32 - 1}, nil), "4294967295 bytes, above the limit of 67108864"},
		"absent bytes": {frame(good, Header{Length: 3, Absent: true}, nil), "absent value comes with 3 bytes"},
		"payload":      {frame(good, Header{Length: 4}, nil, []byte("goof")...), "its payload has the checksum"},
		"no damage":    {frame(good, Header{Length: 4}, nil, []byte("good")...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			group := &localGroup{failed: make(chan struct{})}
			victim, err := JoinTCP(context.Background(), TCPConfig{Size: 2, Ranks: []int{1}, Group: "test", Attempt: 4, Port: newPort(t, nil),
				Join: func(context.Context, string, func() []membership.State) (Group, []membership.Peer, error) {
					return group, nil, nil
				}})
			require.NoError(t, err)
			defer victim.Close()
			conn, err := shake(t, victim.Address(), helloOf(2))
			require.NoError(t, err)
			_, err = conn.Write(c.bytes)
			require.NoError(t, err)
			var h Header
			victimConn := open(t, victim.Node(1), 0, 0)
			err = victimConn.Next(&h)
			if name == "payload" || name == "no damage" {
				require.NoError(t, err)
				err = victimConn.Read(make([]byte, 4))
			}
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			switch name {
			case "garbage", "number", "high number", "damaged", "payload":
				require.ErrorContains(t, err, "rank 0 sent message 0 of channel 0")
				require.ErrorContains(t, err, "which was damaged in transit")
				require.ErrorIs(t, err, membership.ErrDamaged)
			case "old attempt":
				require.ErrorContains(t, err, "rank 0 sent what cannot be received")
				require.ErrorIs(t, err, ErrFenced)
			default:
				require.ErrorContains(t, err, "rank 0 sent what cannot be received")
				require.ErrorIs(t, err, ErrFrame)
			}
			require.Equal(t, err, group.Err())
		})
	}
}

// flipping is a TCP network. On each dialed connection it changes the received byte with the
// number at, counted from 0.
type flipping struct {
	peerlink.TCP
	at int
}

type flippedConn struct {
	net.Conn
	at int
}

func (f flipping) Dial(ctx context.Context, address string) (net.Conn, error) {
	nc, err := f.TCP.Dial(ctx, address)
	return &flippedConn{nc, f.at}, err
}

func (f *flippedConn) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if f.at >= 0 && f.at < n {
		b[f.at] ^= 1
	}
	f.at -= n
	return n, err
}

// TestDialerFindsAnotherServer requires that the group fails at once, and not only after the
// timeout, if another program or another attempt answers at the peer's address, or if the
// answer is damaged.
func TestDialerFindsAnotherServer(t *testing.T) {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer server.Close()
	go func() {
		for {
			conn, err := server.Accept()
			if err != nil {
				return
			}
			_, _ = io.ReadFull(conn, make([]byte, 100))
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	refusing := newPort(t, nil)
	endpoint, err := refusing.Open(peerlink.Endpoint{Kind: peerlink.Lane, Epoch: 5, Serve: func(c *peerlink.Caller) error { return c.Welcome() }})
	require.NoError(t, err)
	defer endpoint.Close()
	accepting := newPort(t, nil)
	endpoint, err = accepting.Open(peerlink.Endpoint{Kind: peerlink.Lane, Epoch: 4, Serve: func(c *peerlink.Caller) error { return c.Welcome() }})
	require.NoError(t, err)
	defer endpoint.Close()
	for want, c := range map[string]struct {
		address string
		at      int
	}{
		"refuses channel 0 of rank 0: no message of this protocol: its answer begins with \"HTTP/1.1\": another program listens there": {server.Addr().String(), -1},
		"refuses channel 0 of rank 0: attempt 4 of the lane is over: this is attempt 5":                                                {refusing.Address(), -1},
		"took channel 0 of rank 0, but its answer was damaged: damaged in transit: its answer has a wrong checksum":                    {accepting.Address(), 9},
	} {
		group := &localGroup{failed: make(chan struct{})}
		m, err := JoinTCP(context.Background(), TCPConfig{Size: 2, Ranks: []int{0}, Attempt: 4,
			Port: newPort(t, func(p *peerlink.Config) { p.Net = flipping{at: c.at} }),
			Join: func(context.Context, string, func() []membership.State) (Group, []membership.Peer, error) {
				return group, []membership.Peer{{Ranks: []int{1}, Address: c.address}}, nil
			}})
		require.NoError(t, err)
		_, err = m.Node(0).Open(context.Background(), []Route{{1, 0}})
		require.ErrorContains(t, err, "rank 1 ("+c.address+") "+want)
		require.NoError(t, m.Close())
	}
}

// TestPeersOfAnotherAuthority requires that a peer with a certificate of another authority is
// refused.
func TestPeersOfAnotherAuthority(t *testing.T) {
	ours, theirs := tlstest.NewConfig(t), tlstest.NewConfig(t)
	i := 0
	_, nodes := clusterAt(t, oneEach(2), func(c *peerlink.Config) {
		if c.TLS = ours; i == 0 {
			c.TLS = theirs
		}
		i++
	}, func(c *TCPConfig) { c.ConnectTimeout = 5 * time.Second })
	_, err := nodes[0].Open(context.Background(), []Route{{1, 0}})
	require.ErrorContains(t, err, "rank 1")
	require.ErrorContains(t, err, "certificate")
}
