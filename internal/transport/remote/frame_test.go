package remote

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/transport"
)

// TestInvalidFrames requires that frames with correct checksums but with an invalid
// head or body are refused.
func TestInvalidFrames(t *testing.T) {
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
			require.NotErrorIs(t, err, io.EOF, "%s: an invalid frame must not be treated as the end of the connection", says)
		}
	}
}

// lazy is a side that does not read the bodies of frames.
type lazy struct{ side }

func (lazy) handle(kind, int) error { return nil }

// TestFramesAreTakenWhole requires an error if a side does not read a whole body, so that the
// rest of the body is not read as the next frame.
func TestFramesAreTakenWhole(t *testing.T) {
	n := &Network{cfg: Config{Worker: 1, Workers: 2, maxMessage: 1 << 20, window: 1 << 20}}
	near, far := net.Pipe()
	c := n.newConn(near, 0, "test")
	c.side = lazy{}
	go func() {
		far.Write(numbered(0, frame(kindGrant, true, make([]byte, grantBytes)), frame(kindBeat, true)))
		far.Close()
	}()
	require.ErrorContains(t, c.frames(), "a grant of 12 bytes, 12 too many")
	near.Close()
}

// TestDroppedFramesLeaveNoGap requires that the good-bye has the number that the other side
// expects after queued frames have been dropped.
func TestDroppedFramesLeaveNoGap(t *testing.T) {
	n := &Network{cfg: Config{Worker: 1, Workers: 2, maxMessage: 1 << 20, window: 1 << 20}}
	near, far := net.Pipe()
	defer near.Close()
	c := n.newConn(near, 0, "test")
	for range 3 {
		c.post(grantFrame(at(0, 0, 1), 1, true))
	}
	c.queueGoodbye(true)
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
