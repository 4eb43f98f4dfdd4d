package precopy

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/peerlink"
)

// sample is a frame.
type sample struct {
	kind kind
	body []byte
}

// samples has a frame of each kind.
func samples(t testing.TB) []sample {
	order, err := orders.Append(nil, Order{Within: time.Second, Takes: []Take{{"q", Process{2, "host:1"}, []int{3, 4, 9}}, {"", Process{}, nil}}})
	require.NoError(t, err)
	outcome, err := outcomes.Append(nil, Outcome{3, 1 << 20, 2, "no room"})
	require.NoError(t, err)
	ask, err := wants.Append(nil, want{"q", 7, time.Second})
	require.NoError(t, err)
	of, err := offers.Append(nil, offer{[]portSize{{0, 10, 80}, {3, 0, 0}}})
	require.NoError(t, err)
	return []sample{
		{kindOrder, order}, {kindOutcome, outcome}, {kindWant, ask}, {kindOffer, of}, {kindGo, nil}, {kindPass, nil},
		{kindData, bytes.Repeat([]byte("rows"), 30)}, {kindEnd, nil}, {kindFailed, []byte("it is gone")},
	}
}

// encoded returns the encoding of frames, and where each ends.
func encoded(t testing.TB, all []sample) (b []byte, ends []int) {
	var out bytes.Buffer
	w := newFrameWriter(&out, func() {})
	for _, s := range all {
		require.NoError(t, w.send(s.kind, s.body))
		ends = append(ends, out.Len())
	}
	return out.Bytes(), ends
}

// decode reads frames until an error.
func decode(b []byte) (all []sample, err error) {
	r := newFrameReader(bytes.NewReader(b), func() {})
	for {
		k, body, err := r.next()
		if err != nil {
			return all, err
		}
		s := sample{kind: k}
		if len(body) > 0 {
			s.body = bytes.Clone(body)
		}
		all = append(all, s)
	}
}

// TestFrames requires that frames are read as they were written.
func TestFrames(t *testing.T) {
	all := samples(t)
	for _, size := range []int{1, checksum.PieceBytes + 1, dataBytes - 1, dataBytes} {
		all = append(all, sample{kindData, bytes.Repeat([]byte{7}, size)})
	}
	all = append(all, sample{kindOrder, make([]byte, messageBytes)})
	b, _ := encoded(t, all)
	got, err := decode(b)
	require.Equal(t, io.EOF, err)
	require.Equal(t, all, got)
	w := newFrameWriter(io.Discard, func() {})
	require.ErrorContains(t, w.write(kindData, make([]byte, dataBytes+1)), "at most")
	require.ErrorContains(t, w.write(kindEnd, []byte{1}), "the end of rows of 1 bytes")
}

// TestEveryBitOfFrames flips each bit of some frames, and requires an error that says damaged, with no wrong frame
// before it.
func TestEveryBitOfFrames(t *testing.T) {
	all := samples(t)
	b, ends := encoded(t, all)
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			got, err := decode(b)
			b[i] ^= 1 << bit
			require.ErrorIs(t, err, peerlink.ErrDamaged, "byte %d, bit %d", i, bit)
			require.Less(t, len(got), len(all))
			require.Equal(t, all[:len(got)], append([]sample{}, got...))
			require.Greater(t, ends[len(got)], i, "no frame before the damaged one may be refused")
		}
	}
}

// TestEveryEndOfFrames cuts frames off after each byte. Only an end between two frames is io.EOF.
func TestEveryEndOfFrames(t *testing.T) {
	all := samples(t)
	b, ends := encoded(t, all)
	for n := range b {
		got, err := decode(b[:n])
		whole := 0
		for whole < len(ends) && ends[whole] <= n {
			whole++
		}
		require.Equal(t, all[:whole], append([]sample{}, got...))
		if n == 0 || whole > 0 && ends[whole-1] == n {
			require.Equal(t, io.EOF, err)
		} else {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		}
	}
}

// TestFramesInTheirOrder loses, repeats and exchanges whole frames, and requires an error that says damaged.
func TestFramesInTheirOrder(t *testing.T) {
	b, ends := encoded(t, samples(t))
	frame := func(i int) []byte { return b[append([]int{0}, ends...)[i]:ends[i]] }
	for _, order := range [][]int{{1}, {0, 2}, {0, 0}, {0, 1, 1}, {1, 0}, {0, 2, 1}} {
		var stream []byte
		for _, i := range order {
			stream = append(stream, frame(i)...)
		}
		_, err := decode(stream)
		require.ErrorIs(t, err, peerlink.ErrDamaged)
		require.ErrorContains(t, err, "frames were lost, repeated or reordered")
	}
}

// TestFramesThatLie requires errors for heads with valid checksums that have no meaning, before memory is taken for
// what they announce.
func TestFramesThatLie(t *testing.T) {
	le := binary.LittleEndian
	for name, change := range map[string]func(b []byte){
		"magic":             func(b []byte) { b[0]++ },
		"kind 0":            func(b []byte) { b[4] = 0 },
		"last kind and 1":   func(b []byte) { b[4] = byte(kindFailed) + 1 },
		"not zero":          func(b []byte) { b[6] = 1 },
		"long rows":         func(b []byte) { le.PutUint32(b[8:], dataBytes+1) },
		"very long rows":    func(b []byte) { le.PutUint32(b[8:], 1<<32-1) },
		"a go with a body":  func(b []byte) { b[4] = byte(kindGo) },
		"an endless order":  func(b []byte) { b[4] = byte(kindOrder); le.PutUint32(b[8:], messageBytes+1) },
		"an end with rows":  func(b []byte) { b[4] = byte(kindEnd) },
		"a pass with bytes": func(b []byte) { b[4] = byte(kindPass) },
	} {
		b, _ := encoded(t, []sample{{kindData, []byte("rows")}})
		change(b)
		le.PutUint32(b[headBytes-sumBytes:], checksum.CRC32C(0, b[:headBytes-sumBytes]))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decode(b)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, peerlink.ErrProtocol, name)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<10), name)
	}
	require.Equal(t, "a frame of kind 99", kind(99).String())
}

// TestMessagesThatLie requires errors for messages that have no meaning.
func TestMessagesThatLie(t *testing.T) {
	take := func(from int, shards ...int) []Take { return []Take{{"q", Process{from, ""}, shards}} }
	for _, o := range []Order{
		{Within: 0}, {Within: -1}, {Within: MaxWithin + 1}, {Within: 1, Takes: take(-1, 3)},
		{Within: 1, Takes: take(1, -1)}, {Within: 1, Takes: take(1, 4, 4)}, {Within: 1, Takes: take(1, 4, 3)},
	} {
		b, err := orders.Append(nil, o)
		require.NoError(t, err)
		_, err = decodeOrder(b)
		require.ErrorIs(t, err, peerlink.ErrProtocol, "%+v", o)
	}
	for _, w := range []want{{"q", -1, 1}, {"q", 1, 0}, {"q", 1, -1}, {"q", 1, MaxWithin + 1}} {
		b, err := wants.Append(nil, w)
		require.NoError(t, err)
		_, err = decodeWant(b)
		require.ErrorIs(t, err, peerlink.ErrProtocol, "%+v", w)
	}
	for _, ports := range [][]portSize{{{-1, 0, 0}}, {{0, -1, 0}}, {{0, 0, -1}}, {{1, 0, 0}, {1, 0, 0}}, {{0, 0, maxBytes}, {1, 0, 1}}} {
		b, err := offers.Append(nil, offer{ports})
		require.NoError(t, err)
		_, _, err = decodeOffer(b)
		require.ErrorIs(t, err, peerlink.ErrProtocol, "%+v", ports)
	}
	for _, o := range []Outcome{{Shards: -1}, {Bytes: -1}, {Left: -1}} {
		b, err := outcomes.Append(nil, o)
		require.NoError(t, err)
		_, err = decodeOutcome(b)
		require.ErrorIs(t, err, peerlink.ErrProtocol, "%+v", o)
	}
}

// FuzzFrames requires that any bytes end in an error, and that what was read before it is written and read again as
// the same.
func FuzzFrames(f *testing.F) {
	b, ends := encoded(f, samples(f))
	f.Add(b)
	for _, end := range ends {
		f.Add(b[:end])
		f.Add(b[end:])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := decode(b)
		require.Error(t, err)
		again, _ := encoded(t, got)
		once, err := decode(again)
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, got, once)
	})
}

// FuzzMessages requires that any bytes are an error or a message within its bounds, which is encoded and decoded again
// as the same.
func FuzzMessages(f *testing.F) {
	for _, s := range samples(f) {
		f.Add(s.body)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if o, err := decodeOrder(b); err == nil {
			again, err := orders.Append(nil, o)
			require.NoError(t, err)
			once, err := decodeOrder(again)
			require.NoError(t, err)
			require.Equal(t, o, once)
		}
		if w, err := decodeWant(b); err == nil {
			require.GreaterOrEqual(t, w.Shard, 0)
			require.LessOrEqual(t, w.Within, MaxWithin)
		}
		if o, bytes, err := decodeOffer(b); err == nil {
			require.LessOrEqual(t, bytes, int64(maxBytes))
			for _, p := range o.Ports {
				require.GreaterOrEqual(t, bytes, p.Bytes)
			}
		}
		if o, err := decodeOutcome(b); err == nil {
			require.LessOrEqual(t, len(o.Because), maxReason+len("…"))
		}
	})
}
