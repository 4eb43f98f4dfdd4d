package remote

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/transport"
)

// TestEveryBitOfAHello: a hello of which a bit is another one is none.
func TestEveryBitOfAHello(t *testing.T) {
	want := hello{version: protocolVersion, attempt: 4, from: 1, to: 2, workers: 3, summed: true, job: jobHash("job"), nonce: [nonceBytes]byte{9}}
	good := want.encode()
	got, raw, err := readHello(bytes.NewReader(good))
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Equal(t, good, raw)
	for bit := range 8 * helloBytes {
		b := bytes.Clone(good)
		b[bit/8] ^= 1 << (bit % 8)
		_, _, err := readHello(bytes.NewReader(b))
		require.Error(t, err, "bit %d", bit)
		if bit/8 >= 6 { // behind what is the same in all versions
			require.ErrorIs(t, err, ErrDamaged, "bit %d", bit)
		}
	}
	for n := range good {
		_, _, err := readHello(bytes.NewReader(good[:n]))
		require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "%d bytes: %v", n, err)
	}
}

// TestEveryBitOfAnAnswer: an answer of which a bit is another one, or the end is missing,
// is neither a yes nor a no, and nothing is taken from it.
func TestEveryBitOfAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		refused error
		follows []byte
	}{
		"yes":          {nil, []byte("what follows a yes")},
		"a mere yes":   {nil, []byte{}},
		"no":           {errors.New("because"), nil},
		"a no at most": {errors.New(strings.Repeat("x", maxReason+1)), nil},
	} {
		var w bytes.Buffer
		require.NoError(t, reply(&w, c.refused, c.follows))
		good, follows := w.Bytes(), make([]byte, len(c.follows))
		err := readReply(bytes.NewReader(good), follows)
		if c.refused == nil {
			require.NoError(t, err)
			require.Equal(t, c.follows, follows)
		} else {
			require.ErrorIs(t, err, ErrRefused)
			require.Equal(t, c.refused.Error()[:min(len(c.refused.Error()), maxReason)], err.Error())
		}
		clear(follows)
		for bit := range 8 * len(good) {
			b := bytes.Clone(good)
			b[bit/8] ^= 1 << (bit % 8)
			err := readReply(bytes.NewReader(b), follows)
			require.Error(t, err, "%s, bit %d", name, bit)
			require.NotErrorIs(t, err, ErrRefused, "%s, bit %d", name, bit)
			require.Equal(t, make([]byte, len(c.follows)), follows)
		}
		for n := range good {
			err := readReply(bytes.NewReader(good[:n]), follows)
			require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF), "%s, %d bytes: %v", name, n, err)
		}
	}
}

// TestAnswersOfOthers: an answer that nobody gives is none, though its checksum is right.
func TestAnswersOfOthers(t *testing.T) {
	for name, head := range map[string][replyBytes]byte{
		"a third verdict":       {'S', 'S', 'r', 'a', 2},
		"what has no meaning":   {'S', 'S', 'r', 'a', verdictNo, 1},
		"a reason of 513 bytes": {'S', 'S', 'r', 'a', verdictNo, 0, 1, 2},
		"a yes with a reason":   {'S', 'S', 'r', 'a', verdictYes, 0, 4},
	} {
		b := append(head[:], make([]byte, binary.LittleEndian.Uint16(head[6:]))...)
		b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
		err := readReply(bytes.NewReader(b), nil)
		require.ErrorIs(t, err, ErrDamaged, name)
		require.ErrorContains(t, err, "an answer begins with", name)
	}
}

// TestFramesHoldWhatTheySay: a frame whose checksums are right is refused where what
// follows is not what it should be to its end.
func TestFramesHoldWhatTheySay(t *testing.T) {
	mem := memory.NewGoAllocator()
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "id int64"), `[{"id": 1}, {"id": 2}]`)
	defer rec.Release()
	c, err := newCodec(0, rec.Schema(), mem)
	require.NoError(t, err)
	message := func(write func(w *frameWriter)) []byte {
		head, err := headOf(at(0, 0, 1), &transport.Message{Shard: 1, Rows: rec})
		require.NoError(t, err)
		w := beginFrame(nil, kindMessage, true)
		w.Write(head.append(nil))
		write(&w)
		return w.end()
	}
	rows := func(w *frameWriter) { require.NoError(t, c.append(w, rec)) }
	schema := schemaFrame(c, true)
	edged := frame(kindBeat, true)
	setEdge(edged, 3)
	for says, frames := range map[string][]byte{
		"EOF":                           numbered(0, schema, message(rows)),
		"a frame begins with":           numbered(0, edged),
		"8 bytes follow the rows":       numbered(0, schema, message(func(w *frameWriter) { rows(w); w.Write(make([]byte, 8)) })),
		"8 bytes follow the schema":     numbered(0, frame(kindSchema, true, make([]byte, 4), c.head, make([]byte, 8))),
		"rows of shard 1: unexpected E": numbered(0, schema, message(func(w *frameWriter) { w.Write([]byte{255, 255, 255, 255, 0, 0, 0, 0}) })),
	} {
		err := hear(t, frames, 1)
		require.ErrorContains(t, err, says)
		if says != "EOF" {
			require.ErrorIs(t, err, ErrProtocol)
			require.NotErrorIs(t, err, io.EOF, "%s: it is no end", says)
		}
	}
}

// lazy is a side that takes nothing of a frame.
type lazy struct{ side }

func (lazy) handle(kind, int) error { return nil }

// TestFramesAreTakenWhole: what is left of a frame never passes for the next one.
func TestFramesAreTakenWhole(t *testing.T) {
	n := &Network{cfg: Config{Worker: 1, Workers: 2, maxMessage: 1 << 20, window: 1 << 20}}
	near, far := net.Pipe()
	c := n.newConn(near, 0, "test")
	c.side = lazy{}
	go func() {
		far.Write(numbered(0, frame(kindDrop, true, make([]byte, 4)), frame(kindBeat, true)))
		far.Close()
	}()
	require.ErrorContains(t, c.frames(), "a drop of 4 bytes, 4 too many")
	near.Close()
}

// TestDroppedFramesLeaveNoGap: who gives up what is queued says good-bye under the number
// that the other side waits for.
func TestDroppedFramesLeaveNoGap(t *testing.T) {
	n := &Network{cfg: Config{Worker: 1, Workers: 2, maxMessage: 1 << 20, window: 1 << 20}}
	near, far := net.Pipe()
	defer near.Close()
	c := n.newConn(near, 0, "test")
	for range 3 {
		c.post(grantFrame(at(0, 0, 1), 1, true))
	}
	c.leave(true)
	c.done.Go(c.write)
	b := make([]byte, headBytes)
	far.SetReadDeadline(time.Now().Add(time.Minute))
	_, err := io.ReadFull(far, b)
	require.NoError(t, err)
	h, err := parseHead(b, 0, 1<<20)
	require.NoError(t, err)
	require.Equal(t, kindBye, h.kind)
	far.Close()
	c.end()
	c.done.Wait()
}
