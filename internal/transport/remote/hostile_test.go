package remote

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport"
)

// intruder returns a connection to worker 1 on which a test can write arbitrary bytes. The
// handshake, as worker 0, is complete.
func intruder(t *testing.T, j *job) net.Conn {
	nc, err := j.nets[0].cfg.Port.Dial(soon(t), j.nets[1].Address(), j.nets[0].hello(1))
	require.NoError(t, err)
	t.Cleanup(func() { nc.Close() })
	return nc
}

// frameOf returns a frame with number 0, which is the first frame of a connection.
func frameOf(k kind, body []byte) []byte { return numbered(0, frame(k, true, body)) }

// numbered assigns the numbers first, first+1 and so on to the frames, and returns their
// concatenation.
func numbered(first uint32, frames ...[]byte) (b []byte) {
	for i, f := range frames {
		stamp(f, first+uint32(i))
		b = append(b, f...)
	}
	return b
}

// headOnly returns the head of a frame without its body.
func headOnly(k kind, length int) []byte { return numbered(0, appendHead(nil, k, length)) }

// stream returns a valid sequence of frames: a schema, a message with rows, the end mark of a
// shard, and a heartbeat.
func stream(t testing.TB, mem memory.Allocator) []byte {
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "id int64 null", "s utf8", "v vector"), `[{"id": 1, "s": "a", "v": [1]}, {"s": "", "v": []}]`)
	defer rec.Release()
	c, err := newCodec(0, rec.Schema(), mem)
	require.NoError(t, err)
	frames := [][]byte{schemaFrame(c, true)}
	for _, m := range []transport.Message{
		{Shard: 1, Rows: rec, Parts: []transport.Part{{Shard: 1, End: 1}, {Shard: 2, End: 2}}},
		{Shard: 1, Last: true, Sent: 1, SentRows: 2},
	} {
		head, err := headOf(at(0, 0, 1), &m)
		require.NoError(t, err)
		w := beginFrame(nil, kindMessage, true)
		w.Write(head.append(nil))
		writeParts(&w, m.Parts)
		if m.Rows != nil {
			require.NoError(t, c.append(&w, m.Rows))
		}
		frames = append(frames, w.end())
	}
	frames = append(frames, frameOf(kindBeat, nil))
	return numbered(0, frames...)
}

// TestHostileFrames requires that each invalid frame makes the network fail with an error that
// describes the fault.
func TestHostileFrames(t *testing.T) {
	message := func(change func(h *messageHead)) []byte {
		h := messageHead{shard: 1}
		change(&h)
		return h.append(nil)
	}
	for _, c := range []struct {
		frame []byte
		says  string
	}{
		{frameOf(99, nil), "a frame begins with "},
		{headOnly(kindMessage, MaxMessage+1), "a message of 268435457 bytes, where there are 56 to 268435456"},
		{headOnly(kindSchema, maxSchema+5), "a schema of 4194309 bytes"},
		{headOnly(kindBeat, 1), "a beat of 1 bytes, where there are 0 to 0"},
		{frameOf(kindGrant, make([]byte, 13)), "a grant of 13 bytes, where there are 12 to 12"},
		{frameOf(kindGrant, make([]byte, grantBytes)), "a grant from the side that connected"},
		{frameOf(kindSchema, append(make([]byte, 4), "no schema at all"...)), "schema 0: read arrow stream"},
		{frameOf(kindSchema, []byte{0, 4, 0, 0}), "a schema of number 1024"},
		{frameOf(kindMessage, message(func(h *messageHead) { h.edge = 7 })), "a message to edge 7, inbox 0, without a credit"},
		{frameOf(kindMessage, message(func(h *messageHead) { h.parts = 3 })), "a message of 56 bytes with 3 parts"},
		{frameOf(kindMessage, message(func(h *messageHead) { h.parts = maxParts + 1 })), "a message with 1048577 parts"},
		{frameOf(kindMessage, message(func(h *messageHead) { h.rows = true })), "rows of schema 0, which was not sent"},
		{frameOf(kindMessage, append(message(func(h *messageHead) { h.parts = 1 }), 1, 0, 0, 0, 9, 0, 0, 0)), "a message to edge 0, inbox 0: part 0 ends at row 9"},
		{frameOf(kindMessage, append(message(func(h *messageHead) {}), 0)), "a message of 57 bytes with 0 parts"},
	} {
		j := newJob(t, 2, nil)
		j.listen(at(0, 0, 1), discard())
		nc := intruder(t, j)
		_, err := nc.Write(c.frame)
		require.NoError(t, err)
		lost := j.failure(1)
		require.ErrorIs(t, lost, ErrProtocol, c.says)
		require.Contains(t, lost.Reason, "sent what is no message of this protocol: "+c.says)
		require.Equal(t, 0, lost.Rank)
		io.Copy(io.Discard, nc) // ends when the connection is closed
	}
}

// TestMoreThanGranted requires that the network fails if a worker sends more messages than it
// has credits.
func TestMoreThanGranted(t *testing.T) {
	j := newJob(t, 2, func(_ int, c *Config) { c.Credits = 2 })
	k := newKeeper(9)
	k.turns = make(chan struct{})
	t.Cleanup(func() { close(k.turns) })
	j.listen(at(0, 0, 1), k)
	nc := intruder(t, j)
	h := messageHead{}
	for i := range 4 {
		_, err := nc.Write(numbered(uint32(i), frame(kindMessage, true, h.append(nil))))
		require.NoError(t, err)
	}
	require.Contains(t, j.failure(1).Reason, "a message to edge 0, inbox 0, without a credit")
}

// hear makes the listener's end of a connection from the given worker read the bytes b, and
// returns the resulting error. It requires that all memory is released.
func hear(t testing.TB, b []byte, worker int) error { return hearFrom(t, b, worker, 0) }

// hearFrom does the same as hear, but the first frame must have the given number.
func hearFrom(t testing.TB, b []byte, worker int, number uint32) error {
	mem := batchtest.Allocator(t)
	n := &Network{cfg: Config{Worker: worker, Workers: 2, Credits: 8, Allocator: mem, maxMessage: 1 << 20, window: 1 << 20}}
	near, far := net.Pipe()
	defer far.Close()
	c := n.newConn(near, 1-worker, "test")
	c.nextFrame = number
	in := newIncoming(c)
	c.side = in
	box := n.newInbox(at(0, 0, worker), discard())
	in.open(box)
	go func() { far.Write(b); far.Close() }()
	err := c.frames()
	near.Close()
	in.finish()
	box.drain()
	return err
}

// TestDamagedStreams requires that a change of any byte of a stream is reported as damage, and
// that a stream that is truncated at any byte is reported as closed.
func TestDamagedStreams(t *testing.T) {
	b := stream(t, memory.NewGoAllocator())
	require.ErrorIs(t, hear(t, b, 0), io.EOF, "the stream must be valid to its end")
	for i := range b {
		require.True(t, peerlink.IsClosed(hear(t, b[:i], 0)))
		bad := append([]byte{}, b...)
		bad[i] ^= 0x81
		require.ErrorIs(t, hear(t, bad, 0), ErrDamaged)
	}
}

// TestFramesAreMissed requires that a lost, repeated or reordered frame is detected at the next
// frame that arrives.
func TestFramesAreMissed(t *testing.T) {
	h := messageHead{}
	a, b, c := frameOf(kindMessage, h.append(nil)), numbered(1, frame(kindMessage, true, h.append(nil))), numbered(2, frame(kindBeat, true))
	for says, frames := range map[string][][]byte{
		"EOF":                                  {a, b, c},
		"frame 2 came in the place of frame 1": {a, c},
		"frame 1 came in the place of frame 0": {b, c},
		"frame 0 came in the place of frame 1": {a, a, b},
		"frame 1 came in the place of frame 2": {a, b, b},
		"frame 2 came in the place of frame 0": {c, b, a},
	} {
		require.ErrorContains(t, hear(t, slices.Concat(frames...), 0), says)
	}
}

// TestFrameNumbersWrapRound requires that no damage is reported when frame numbers wrap around,
// and that the loss of a frame at this point is detected.
func TestFrameNumbersWrapRound(t *testing.T) {
	const first = math.MaxUint32 - 1
	var frames [][]byte
	for range 4 {
		frames = append(frames, frame(kindBeat, true))
	}
	b := numbered(first, frames...)
	require.ErrorIs(t, hearFrom(t, b, 0, first), io.EOF, "the stream must be valid to its end")
	for i := range 3 {
		gap := slices.Concat(b[:i*headBytes], b[(i+1)*headBytes:])
		want := uint32(first)
		want += uint32(i)
		require.ErrorContains(t, hearFrom(t, gap, 0, first), fmt.Sprintf("frame %d came in the place of frame %d", want+1, want))
	}
}

// TestRepaired requires that repaired corrects all numbers and checksums, which the fuzz tests
// need.
func TestRepaired(t *testing.T) {
	b := stream(t, memory.NewGoAllocator())
	bad := bytes.Clone(b)
	for at := 0; at < len(bad); {
		clear(bad[at+8 : at+headBytes])
		length := int(binary.LittleEndian.Uint32(bad[at:]))
		if at += headBytes + length; length > 0 {
			at += sumBytes
			clear(bad[at-sumBytes : at])
		}
	}
	require.NotEqual(t, b, bad)
	require.Equal(t, b, repaired(bad))
}

// TestPieces requires that bodies of all lengths are read unchanged by reads of any lengths. If
// a byte was changed, neither this byte nor a later byte may be returned.
func TestPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 7, pieceBytes - 1, pieceBytes, pieceBytes + 1, 2 * pieceBytes, 2*pieceBytes + 5} {
		data := make([]byte, n)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		for _, step := range []int{5, 1000, pieceBytes, pieceBytes + 4, 1 << 20} {
			for _, summed := range []bool{true, false} {
				read := func(b []byte) (got []byte, err error) {
					f := frameReader{source: bytes.NewReader(b), summed: summed}
					f.begin(frameHead{kind: kindMessage, number: 3, length: int64(n)})
					buf := make([]byte, step)
					for err == nil {
						var k int
						k, err = f.Read(buf)
						if err == nil {
							got = append(got, buf[:k]...)
						}
					}
					return got, err
				}
				b := frame(kindMessage, summed, data[:n/3], data[n/3:])[headBytes:]
				got, err := read(b)
				require.Equal(t, io.EOF, err)
				require.True(t, bytes.Equal(data, got))
				if !summed {
					require.Len(t, b, n)
					continue
				}
				at := r.IntN(len(b))
				b[at] ^= 4
				got, err = read(b)
				require.ErrorIs(t, err, ErrDamaged)
				require.LessOrEqual(t, len(got), at)
				require.True(t, bytes.Equal(data[:len(got)], got))
				_, err = read(b[:at])
				require.Equal(t, io.ErrUnexpectedEOF, err)
			}
		}
	}
}

// repaired returns b with corrected frame numbers and checksums, as far as its bytes are
// frames, so that fuzz tests reach the code after these checks.
func repaired(b []byte) []byte {
	b = bytes.Clone(b)
	for at, number := 0, uint32(0); at+headBytes <= len(b); number++ {
		stamp(b[at:], number)
		length := int(binary.LittleEndian.Uint32(b[at:]))
		at += headBytes
		for sum := checksum.Sum(0); length > 0; {
			n := min(length, pieceBytes)
			if at+n+sumBytes > len(b) {
				return b
			}
			sum = sum.Add(b[at : at+n])
			binary.LittleEndian.PutUint32(b[at+n:], sum.Bits())
			at, length = at+n+sumBytes, length-n
		}
	}
	return b
}

func FuzzIncoming(f *testing.F) {
	b := stream(f, memory.NewGoAllocator())
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add(frameOf(kindBye, nil))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = hear(t, b, 0)
		b = repaired(b)
		_ = hear(t, b, 0)
		_ = hear(t, b, 1)
	})
}

// FuzzOutgoing makes the dialer's end of a connection read arbitrary bytes, and requires that
// it does not panic.
func FuzzOutgoing(f *testing.F) {
	f.Add(numbered(0, grantFrame(at(0, 0, 0), 3, true)))
	f.Add(frameOf(kindDamaged, []byte("x")))
	f.Add(numbered(0, frame(kindBeat, true), frame(kindBye, true)))
	f.Fuzz(func(t *testing.T, b []byte) {
		b = repaired(b)
		n := &Network{cfg: Config{Worker: 1, Workers: 2, maxMessage: 1 << 20, window: 1 << 20}}
		near, far := net.Pipe()
		p := newPeer(n, 0)
		p.conn = n.newConn(near, 0, "test")
		p.conn.side = p
		go func() { far.Write(b); far.Close() }()
		_ = p.conn.frames()
		near.Close()
	})
}

// TestChecksumsAreAgreedOn requires that a connection is refused if only one of the two workers
// uses checksums.
func TestChecksumsAreAgreedOn(t *testing.T) {
	for _, bare := range [][2]bool{{false, true}, {true, false}, {true, true}} {
		j := connected(t, 2, func(w int, c *Config) { c.NoChecksum = bare[w] })
		got := make(chan struct{})
		j.listen(at(0, 0, 1), receive(func(m transport.Message) { m.Release(); close(got) }))
		err := j.dial(0, at(0, 0, 1)).Send(soon(t), transport.Message{Rows: j.rows(3)})
		if bare[0] == bare[1] {
			require.NoError(t, err)
			<-got
			continue
		}
		require.ErrorIs(t, err, ErrRefused)
		require.ErrorContains(t, err, fmt.Sprintf("refused the connection: it sends rows with checksums: %t, this worker: %t; all must do the same", !bare[0], !bare[1]))
	}
}

// TestDamageIsACause requires that, on both sides, an error about damage counts as a cause and
// not as the loss of another worker.
func TestDamageIsACause(t *testing.T) {
	j := between(t, nil, func(to, from net.Conn) {
		io.CopyN(to, from, 3000)
		var b [1]byte
		io.ReadFull(from, b[:])
		b[0] ^= 32
		to.Write(b[:])
		io.Copy(to, from)
		to.(*net.TCPConn).CloseWrite()
	})
	j.listen(at(0, 0, 1), discard())
	j.flood(j.dial(0, at(0, 0, 1)))
	lost := j.failure(1)
	require.ErrorIs(t, lost, ErrDamaged)
	require.False(t, lost.PeerLost())
	require.Regexp(t, `^worker 0 \(127.0.0.1:\d+\) sent worker 1 what was damaged in transit: (the head of )?frame \d+`, lost.Error())
	told := j.failure(0)
	require.ErrorIs(t, told, ErrDamaged)
	require.False(t, told.PeerLost())
	require.Contains(t, told.Error(), "says that what worker 0 sent it came "+lost.Kind.Error())
}

// TestDamageNamesTheEdge requires that the errors of both sides name the edge of damaged rows.
// If the head of the frame is damaged, the edge is unknown.
func TestDamageNamesTheEdge(t *testing.T) {
	for _, edge := range []int{0, 7, 300, 70_000} {
		j := between(t, func(_ int, c *Config) {
			c.EdgeName = func(edge int) string { return fmt.Sprintf("the rows of Map no. %d", edge) }
		}, func(to, from net.Conn) {
			io.CopyN(to, from, 10_000)
			var b [1]byte
			io.ReadFull(from, b[:])
			b[0] ^= 4
			to.Write(b[:])
			io.Copy(to, from)
			to.(*net.TCPConn).CloseWrite()
		})
		j.listen(at(edge, 0, 1), discard())
		_ = j.dial(0, at(edge, 0, 1)).Send(soon(t), transport.Message{Rows: j.rows(1000)})
		want := fmt.Sprintf(" for edge %d, the rows of Map no. %d: up to byte ", edge, edge)
		require.Regexp(t, `^worker 0 \(127.0.0.1:\d+\) sent worker 1 what was damaged in transit: frame \d+, a message of \d+ bytes`+want, j.failure(1).Error())
		require.Regexp(t, `^worker 1 \(127.0.0.1:\d+\) says that what worker 0 sent it came damaged in transit: frame \d+, a message of \d+ bytes`+want, j.failure(0).Error())
	}
	b := stream(t, memory.NewGoAllocator())
	b[1] ^= 1
	require.ErrorContains(t, hear(t, b, 0), "damaged in transit: the head of frame 0, so that it is not known for what it was, has the checksum")
}

// TestEdgesOfHeads requires that heads can have edges from 0 to maxEdge, and that any other
// edge is read as −1.
func TestEdgesOfHeads(t *testing.T) {
	for edge, want := range map[int32]int{0: 0, 1: 1, 255: 255, 1 << 20: 1 << 20, maxEdge: maxEdge, maxEdge + 1: -1, math.MaxInt32: -1, -1: -1, math.MinInt32: -1} {
		b := appendHead(nil, kindMessage, messageBytes)
		setEdge(b, edge)
		stamp(b, 9)
		h, err := parseHead(b, 9, MaxMessage)
		require.NoError(t, err)
		require.Equal(t, frameHead{kindMessage, 9, messageBytes, want}, h)
	}
}
