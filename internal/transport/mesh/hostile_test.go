package mesh

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/superstep-ml/superstep/internal/transport/checksum"
	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// helloOf is the hello that the clusters of these tests accept, from rank 0 to rank 1.
func helloOf() hello {
	return hello{attempt: 4, group: groupHash("test"), from: 0, to: 1, summed: true}
}

// shake connects to a mesh as anybody could, says hello, and returns the answer.
func shake(t *testing.T, address string, m hello) (net.Conn, verdict, string) {
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	var b [helloBytes]byte
	m.encode(&b)
	_, err = conn.Write(b[:])
	require.NoError(t, err)
	v, reason, err := readAnswer(conn)
	require.NoError(t, err)
	return conn, v, reason
}

func TestListenerRefuses(t *testing.T) {
	meshes, nodes := cluster(t, [][]int{{0}, {1, 2}}, nil)
	address := meshes[1].Address()
	couple(t, nodes[0], nodes[1], 3)
	for want, c := range map[string]struct {
		verdict verdict
		change  func(*hello)
	}{
		"attempt 3, which is over: attempt 4 runs": {refused, func(m *hello) { m.attempt = 3 }},
		"attempt 5, newer than attempt 4 here":     {notYet, func(m *hello) { m.attempt = 5 }},
		"another group":                            {refused, func(m *hello) { m.group++ }},
		"from rank 1 to rank 0":                    {refused, func(m *hello) { m.from, m.to = 1, 0 }},
		"from rank 0 to rank 0":                    {refused, func(m *hello) { m.to = 0 }},
		"to rank 4294967295":                       {refused, func(m *hello) { m.to = 1<<32 - 1 }},
		"channel 1024":                             {refused, func(m *hello) { m.channel = MaxChannels }},
		"rank 1, which the process":                {refused, func(m *hello) { m.from, m.to = 1, 2 }},
		"rank 0 sends data without checksums and rank 1 sends data with checksums": {refused, func(m *hello) { m.summed = false }},
		"connected to rank 1 on channel 3 already":                                 {refused, func(m *hello) { m.channel = 3 }},
	} {
		m := helloOf()
		c.change(&m)
		_, v, reason := shake(t, address, m)
		require.Equal(t, c.verdict, v)
		require.Contains(t, reason, want)
	}
	_, _, reason := shake(t, meshes[0].Address(), hello{attempt: 4, group: groupHash("test"), from: 1, to: 2, summed: true})
	require.Contains(t, reason, "hosts ranks [0]")
	require.NoError(t, nodes[0].Err(), "a stranger does not end the group")
}

// Bytes of no protocol, and connections that say nothing, are closed in time and
// disturb nobody.
func TestListenerSurvivesStrangers(t *testing.T) {
	meshes, nodes := cluster(t, oneEach(2), func(c *TCPConfig) { c.ConnectTimeout = 300 * time.Millisecond })
	var whole [helloBytes]byte
	m := helloOf()
	m.encode(&whole)
	damaged := whole
	damaged[20] ^= 1
	other := whole
	other[4]++
	var strangers errgroup.Group
	for name, say := range map[string][]byte{
		"nothing": nil, "half a hello": whole[:helloBytes/2], "garbage": bytes.Repeat([]byte{0xff}, 1<<10),
		"HTTP": []byte("GET / HTTP/1.1\r\nHost: a-host-name.example.com\r\n\r\n"), "a damaged hello": damaged[:], "another version": other[:],
	} {
		strangers.Go(func() error {
			conn, err := net.Dial("tcp", meshes[1].Address())
			if err != nil {
				return err
			}
			defer conn.Close()
			if _, err := conn.Write(say); err != nil {
				return err
			}
			answer, _ := io.ReadAll(conn) // until it is closed
			if (len(answer) > 0) != (name == "another version") {
				return fmt.Errorf("%s is answered by %q", name, answer)
			}
			return nil
		})
	}
	ca, cb := couple(t, nodes[0], nodes[1], 0)
	require.NoError(t, strangers.Wait())
	require.NoError(t, ca.Send(&Header{Seq: 3}, nil))
	require.NoError(t, cb.Next(new(Header)))
}

// The answer to a hello may be lost with its connection. The lower rank tries
// again, and the connection that nobody uses gives way.
func TestListenerTakesSecondHello(t *testing.T) {
	meshes, nodes := cluster(t, oneEach(2), nil)
	first, v, _ := shake(t, meshes[1].Address(), helloOf())
	require.Equal(t, accepted, v)
	ca := open(t, nodes[0], 1, 0)
	_, err := io.ReadAll(first)
	require.NoError(t, err, "closed")
	late, v, _ := shake(t, meshes[1].Address(), helloOf()) // of a try before that one
	require.Equal(t, accepted, v)
	_, err = io.ReadAll(late)
	require.NoError(t, err, "closed")
	cb := open(t, nodes[1], 0, 0)
	require.NoError(t, ca.Post(&Header{Seq: 3}, nil))
	var h Header
	require.NoError(t, cb.Next(&h))
	require.Equal(t, uint64(3), h.Seq)
}

func TestHostileMessages(t *testing.T) {
	good := &fence{attempt: 4, group: groupHash("test"), limit: 1 << 30, summed: true}
	frame := func(f *fence, h Header, change func(b []byte), payload ...byte) []byte {
		var b [headerBytes]byte
		f.encode(&b, &h, 0, seal{sum: checksum.Of([]byte("good")).Bits()})
		if change != nil {
			change(b[:])
			binary.LittleEndian.PutUint32(b[headerSumFrom:], crc32.Checksum(b[:headerSumFrom], castagnoli))
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
			victim, err := JoinTCP(context.Background(), TCPConfig{Size: 2, Ranks: []int{1}, Group: "test", Attempt: 4,
				Join: func(context.Context, string, func() []membership.State) (Group, []membership.Peer, error) {
					return group, nil, nil
				}})
			require.NoError(t, err)
			defer victim.Close()
			conn, _, _ := shake(t, victim.Address(), helloOf())
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

// What answers at the peer's address is not what was expected: the group fails at
// once, not when time is up.
func TestDialerFindsAnotherServer(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, writeAnswer(&b, refused, "fenced off: it is of attempt 4, which is over: attempt 5 runs"))
	damaged := bytes.Clone(b.Bytes())
	damaged[20] ^= 1
	for want, answer := range map[string][]byte{
		"refuses channel 0 of rank 0: bad message: the answer begins with \"HTTP\": another program listens there": []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"refuses channel 0 of rank 0: fenced off: it is of attempt 4, which is over: attempt 5 runs":               b.Bytes(),
		"took channel 0 of rank 0, but its answer was damaged in transit":                                          damaged,
	} {
		server, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		var once sync.WaitGroup
		once.Go(func() {
			conn, err := server.Accept()
			if err == nil {
				_, _ = io.ReadFull(conn, make([]byte, helloBytes))
				_, _ = conn.Write(answer)
				_ = conn.Close()
			}
		})
		group := &localGroup{failed: make(chan struct{})}
		m, err := JoinTCP(context.Background(), TCPConfig{Size: 2, Ranks: []int{0}, Attempt: 4,
			Join: func(context.Context, string, func() []membership.State) (Group, []membership.Peer, error) {
				return group, []membership.Peer{{Ranks: []int{1}, Address: server.Addr().String()}}, nil
			}})
		require.NoError(t, err)
		_, err = m.Node(0).Open(context.Background(), []Route{{1, 0}})
		require.ErrorContains(t, err, "rank 1 ("+server.Addr().String()+") "+want)
		require.NoError(t, m.Close())
		require.NoError(t, server.Close())
		once.Wait()
	}
}

// A peer whose certificate is of another authority is not talked to.
func TestTLSStrangers(t *testing.T) {
	ours, theirs := certificates(t), certificates(t)
	i := 0
	_, nodes := cluster(t, oneEach(2), func(c *TCPConfig) {
		c.ConnectTimeout = 5 * time.Second
		if c.TLS = ours; i == 0 {
			c.TLS = theirs
		}
		i++
	})
	_, err := nodes[0].Open(context.Background(), []Route{{1, 0}})
	require.ErrorContains(t, err, "rank 1")
	require.ErrorContains(t, err, "certificate")
}
