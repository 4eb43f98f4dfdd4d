package copies

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/peerlink"
)

// sample is a frame and its body.
type sample struct {
	Message
	body []byte
}

// samples has a frame of each kind.
func samples() []sample {
	s := State{"means", 5, false, 9}
	last := State{"", 6, true, 9}
	return []sample{
		{Message{kind: kindPiece, State: s, piece: 8}, content(s, 8, 300)},
		{Message{kind: kindPiece, State: last, piece: 1}, nil},
		{Message{kind: kindReceived}, nil},
		{Message{kind: kindReport, State: last, void: true}, nil},
		{Message{kind: kindOutcome, State: s}, nil},
		{Message{kind: kindFetch, State: s}, []byte{0, 8}},
		{Message{kind: kindMissing, State: s, piece: 3}, nil},
		{Message{kind: kindReport, State: s, wide: true}, nil},
		{Message{kind: kindGather, State: last}, nil},
		{Message{kind: kindGathered, State: s}, nil},
		{Message{kind: kindNarrow, State: narrowState}, nil},
	}
}

// encoded returns the encoding of frames, and where each ends.
func encoded(t testing.TB, all []sample) (b []byte, ends []int) {
	var out bytes.Buffer
	w := newFrameWriter(&out, func() {})
	for _, s := range all {
		require.NoError(t, w.write(s.Message, s.body, checksum.Of(s.body)))
		require.NoError(t, w.flush())
		ends = append(ends, out.Len())
	}
	return out.Bytes(), ends
}

// decode reads frames until an error.
func decode(b []byte) (all []sample, err error) {
	r := newFrameReader(bytes.NewReader(b), nil)
	for {
		h, err := r.next()
		if err != nil {
			return all, err
		}
		body, sum, err := r.body(nil, h.length)
		if err == nil && sum != checksum.Of(body) {
			err = errors.New("the reader returns a wrong checksum")
		}
		if err != nil {
			return all, err
		}
		all = append(all, sample{h.Message, body})
	}
}

// TestFrames requires that frames are read as they were written, also bodies of several steps.
func TestFrames(t *testing.T) {
	all := samples()
	s := State{"trees", 5, false, 9}
	for _, size := range []int{1, checksum.PieceBytes, stepBytes - 1, stepBytes, stepBytes + 1, firstRoom, 3*firstRoom + 77} {
		all = append(all, sample{Message{kind: kindPiece, State: s, piece: 2}, content(s, 2, size)})
	}
	b, _ := encoded(t, all)
	got, err := decode(b)
	require.ErrorIs(t, err, io.EOF)
	require.Equal(t, all, got)
}

// TestEveryBitOfFrames flips each bit of some frames, and requires an error that says damaged, with
// no wrong frame before it.
func TestEveryBitOfFrames(t *testing.T) {
	all := samples()
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
	all := samples()
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

// TestFramesInTheirOrder loses, repeats and exchanges whole frames, and requires an error that says
// damaged.
func TestFramesInTheirOrder(t *testing.T) {
	all := samples()
	b, ends := encoded(t, all)
	frame := func(i int) []byte {
		if i == 0 {
			return b[:ends[0]]
		}
		return b[ends[i-1]:ends[i]]
	}
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

// forged returns the head of a frame with a valid checksum, in which change has changed bytes.
func forged(t testing.TB, m Message, change func(b []byte)) []byte {
	b, _ := encoded(t, []sample{{m, nil}})
	change(b)
	binary.LittleEndian.PutUint32(b[headBytes-sumBytes:], checksum.CRC32C(0, b[:headBytes-sumBytes]))
	if len(b) > headBytes {
		end := len(b) - sumBytes
		binary.LittleEndian.PutUint32(b[end:], checksum.CRC32C(0, b[:end]))
	}
	return b
}

// TestFramesThatLie requires errors for frames with valid checksums that have no meaning.
func TestFramesThatLie(t *testing.T) {
	m := Message{kind: kindPiece, State: State{"means", 5, false, 9}, piece: 8}
	le := binary.LittleEndian
	for _, c := range []struct {
		name   string
		change func(b []byte)
		err    string
	}{
		{"magic", func(b []byte) { b[0]++ }, "a frame begins with 54"},
		{"kind 0", func(b []byte) { b[4] = 0 }, "a frame begins with"},
		{"last kind and 1", func(b []byte) { b[4] = byte(kindNarrow) + 1 }, "a frame begins with"},
		{"flags", func(b []byte) { b[5] = 8 }, "a frame begins with"},
		{"superstep 0", func(b []byte) { le.PutUint32(b[8:], 0) }, `a piece: there is no superstep 0 of queue "means"`},
		{"superstep", func(b []byte) { le.PutUint32(b[8:], 1<<31) }, "there is no superstep 2147483648"},
		{"no pieces", func(b []byte) { le.PutUint32(b[12:], 0) }, "a state of 0 pieces"},
		{"many pieces", func(b []byte) { le.PutUint32(b[12:], MaxPieces+1) }, "pieces, where there are 1 to"},
		{"piece", func(b []byte) { le.PutUint32(b[16:], 9) }, "there is no piece 9 of 9"},
		{"long body", func(b []byte) { le.PutUint32(b[20:], 1<<31) }, "a frame begins with"},
		{"body of a report", func(b []byte) { b[4] = byte(kindReport); le.PutUint32(b[20:], 1) }, "a frame begins with"},
		{"body of an acknowledgement", func(b []byte) { b[4] = byte(kindReceived); le.PutUint32(b[20:], 1) }, "a frame begins with"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := decode(forged(t, m, c.change))
			require.ErrorIs(t, err, peerlink.ErrProtocol)
			require.ErrorContains(t, err, c.err)
		})
	}
}

// TestBodiesThatDoNotCome requires that a body takes memory in proportion to the bytes that come,
// and not to the length that its head claims.
func TestBodiesThatDoNotCome(t *testing.T) {
	m := Message{kind: kindPiece, State: State{"means", 5, false, 9}, piece: 8}
	for _, comes := range []int{0, 1000, 2 << 20} {
		b := append(forged(t, m, func(b []byte) { binary.LittleEndian.PutUint32(b[20:], MaxPiece) }), make([]byte, comes)...)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := decode(b)
		runtime.ReadMemStats(&after)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4*comes+2*firstRoom))
	}
}

// FuzzFrames requires that any bytes end in an error, and that what was read before it is written
// and read again as the same.
func FuzzFrames(f *testing.F) {
	b, ends := encoded(f, samples())
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
