package remote

import (
	"encoding/binary"
	"io"
	"net"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/transport"
)

// intruder is a connection to worker 1 as worker 0, past its handshake, on which the
// test writes bytes of its own.
func intruder(t *testing.T, j *job) net.Conn {
	nc, final, err := j.nets[0].ask(soon(t), raw(t, j.nets[1]), 1, j.nets[1].Address())
	require.NoError(t, err)
	require.True(t, final)
	return nc
}

func frameOf(k kind, body []byte) []byte { return append(appendHead(nil, k, len(body)), body...) }

// stream is a valid sequence of frames: a schema, rows, an end, requests.
func stream(t testing.TB, mem memory.Allocator) []byte {
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "id int64 null", "s utf8", "v vector"), `[{"id": 1, "s": "a", "v": [1]}, {"s": "", "v": []}]`)
	defer rec.Release()
	c, err := newCodec(0, rec.Schema(), mem)
	require.NoError(t, err)
	b := appendSchema(c)
	for _, m := range []transport.Message{
		{Shard: 1, Rows: rec, Parts: []transport.Part{{Shard: 1, End: 1}, {Shard: 2, End: 2}}},
		{Shard: 1, Last: true, Sent: 1},
	} {
		head, err := headOf(at(0, 0, 1), &m)
		require.NoError(t, err)
		frame := appendParts(head.append(appendHead(nil, kindMessage, 0)), m.Parts)
		if m.Rows != nil {
			frame, err = c.append(frame, m.Rows)
			require.NoError(t, err)
		}
		binary.LittleEndian.PutUint32(frame, uint32(len(frame)-headBytes))
		b = append(b, frame...)
	}
	b = append(b, frameOf(kindSet, []byte{1, 0, 0, 0, 1, 0, 'k', 'v'})...)
	b = append(b, frameOf(kindGet, []byte{2, 0, 0, 0, 'w'})...)
	b = append(b, frameOf(kindDrop, []byte{2, 0, 0, 0})...)
	return append(b, frameOf(kindBeat, nil)...)
}

// TestHostileFrames: each is a failure that says what is wrong.
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
		{[]byte("GET / HTTP"), "a frame begins with 474554202f204854"},
		{frameOf(99, nil), "a frame begins with "},
		{appendHead(nil, kindMessage, MaxMessage+1), "a message of 268435457 bytes, where there are 48 to 268435456"},
		{appendHead(nil, kindSchema, maxSchema+5), "a schema of 4194309 bytes"},
		{appendHead(nil, kindBeat, 1), "a beat of 1 bytes, where there are 0 to 0"},
		{frameOf(kindGrant, make([]byte, grantBytes)), "a grant from who connected"},
		{frameOf(kindReply, make([]byte, 5)), "a reply from who connected"},
		{frameOf(kindSchema, append(make([]byte, 4), "no schema at all"...)), "schema 0: read arrow stream"},
		{frameOf(kindSchema, []byte{0, 4, 0, 0}), "a schema of number 1024"},
		{frameOf(kindMessage, message(func(h *messageHead) { h.edge = 7 })), "a message to edge 7, inbox 0, without a credit"},
		{frameOf(kindMessage, message(func(h *messageHead) { h.parts = 3 })), "a message of 48 bytes with 3 parts"},
		{frameOf(kindMessage, message(func(h *messageHead) { h.parts = maxParts + 1 })), "a message with 1048577 parts"},
		{frameOf(kindMessage, message(func(h *messageHead) { h.rows = true })), "rows of schema 0, which was not sent"},
		{frameOf(kindMessage, append(message(func(h *messageHead) { h.parts = 1 }), 1, 0, 0, 0, 9, 0, 0, 0)), "a message to edge 0, inbox 0: part 0 ends at row 9"},
		{frameOf(kindMessage, append(message(func(h *messageHead) {}), 0)), "a message of 49 bytes with 0 parts"},
		{frameOf(kindGet, make([]byte, 4)), "a get, though this is not worker 0"},
	} {
		j := newJob(t, 2, nil)
		j.listen(at(0, 0, 1), discard())
		nc := intruder(t, j)
		_, err := nc.Write(c.frame)
		require.NoError(t, err)
		lost := j.failure(1)
		require.ErrorIs(t, lost, ErrProtocol, c.says)
		require.Contains(t, lost.Reason, "sent what is no message of this protocol: "+c.says)
		require.Equal(t, 0, lost.Worker)
		io.Copy(io.Discard, nc) // it is closed
	}
}

// TestMoreThanGranted: who sends without credits is cut off before memory is taken.
func TestMoreThanGranted(t *testing.T) {
	j := newJob(t, 2, func(_ int, c *Config) { c.Credits = 2 })
	k := newKeeper(9)
	k.turns = make(chan struct{})
	t.Cleanup(func() { close(k.turns) })
	j.listen(at(0, 0, 1), k)
	nc := intruder(t, j)
	h := messageHead{}
	for range 4 {
		_, err := nc.Write(frameOf(kindMessage, h.append(nil)))
		require.NoError(t, err)
	}
	require.Contains(t, j.failure(1).Reason, "a message to edge 0, inbox 0, without a credit")
}

// hear has an accepted connection read the given bytes, and requires that all memory
// is given back.
func hear(t testing.TB, b []byte, worker int) error {
	mem := batchtest.Allocator(t)
	n := &Network{cfg: Config{Worker: worker, Workers: 2, Credits: 8, Allocator: mem, maxMessage: 1 << 20, window: 1 << 20}}
	if worker == 0 {
		n.store = newKeyValues()
	}
	near, far := net.Pipe()
	defer far.Close()
	c := n.newConn(near, 1-worker, "test")
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

// TestDamagedStreams: cut anywhere, or with any byte changed, a stream is an error or
// something else that is valid.
func TestDamagedStreams(t *testing.T) {
	b := stream(t, memory.NewGoAllocator())
	require.ErrorIs(t, hear(t, b, 0), io.EOF, "it is valid to its end")
	for i := range b {
		require.Error(t, hear(t, b[:i], 0))
		bad := append([]byte{}, b...)
		bad[i] ^= 0x81
		_ = hear(t, bad, 0)
	}
}

func FuzzIncoming(f *testing.F) {
	b := stream(f, memory.NewGoAllocator())
	f.Add(b)
	f.Add(b[:len(b)/2])
	f.Add(frameOf(kindBye, nil))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		_ = hear(t, b, 0)
		_ = hear(t, b, 1)
	})
}

// FuzzOutgoing has the dialer's end hear anything.
func FuzzOutgoing(f *testing.F) {
	f.Add(grantFrame(at(0, 0, 0), 3))
	f.Add(frameOf(kindReply, []byte{1, 0, 0, 0, 0, 'x'}))
	f.Add(append(frameOf(kindBeat, nil), frameOf(kindBye, nil)...))
	f.Fuzz(func(t *testing.T, b []byte) {
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
