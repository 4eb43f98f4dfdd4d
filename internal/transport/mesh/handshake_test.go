package mesh

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// TestEveryBitOfAHello: no hello of which a bit is another one is accepted, or refused for
// good: another try does better.
func TestEveryBitOfAHello(t *testing.T) {
	var good [helloBytes]byte
	want := helloOf()
	want.channel, want.try = 7, 9
	want.encode(&good)
	var m hello
	v, err := m.decode(&good)
	require.NoError(t, err)
	require.Equal(t, accepted, v)
	require.Equal(t, want, m)
	for bit := range 8 * helloBytes {
		b := good
		b[bit/8] ^= 1 << (bit % 8)
		m = hello{}
		v, err := m.decode(&b)
		require.ErrorIs(t, err, ErrFrame, "bit %d", bit)
		require.NotEqual(t, accepted, v, "bit %d", bit)
		require.NotEqual(t, refused, v, "bit %d", bit)
		require.Equal(t, hello{}, m, "bit %d: nothing is taken from a hello that is not accepted", bit)
	}
}

// TestHellosOfOthers: a hello whose checksum is right is refused where it is of another
// version, and not answered where it says what has no meaning.
func TestHellosOfOthers(t *testing.T) {
	for _, c := range []struct {
		at      int
		to      byte
		verdict verdict
		says    string
	}{
		{4, WireVersion + 1, refused, "a hello of version 5 of the protocol, this is version 4: run the same build everywhere"},
		{5, 2, 0, "flags"}, {6, 1, 0, "flags"}, {7, 1, 0, "flags"},
	} {
		var b [helloBytes]byte
		m := helloOf()
		m.encode(&b)
		b[c.at] = c.to
		resum(b[:])
		v, err := m.decode(&b)
		require.ErrorIs(t, err, ErrFrame)
		require.ErrorContains(t, err, c.says)
		require.Equal(t, c.verdict, v)
	}
}

// TestEveryBitOfAnAnswer: an answer of which a bit is another one, or the end is missing,
// is none.
func TestEveryBitOfAnAnswer(t *testing.T) {
	for v, reason := range map[verdict]string{accepted: "", refused: "because", notYet: strings.Repeat("x", maxReason)} {
		var w bytes.Buffer
		require.NoError(t, writeAnswer(&w, v, reason))
		good := w.Bytes()
		got, said, err := readAnswer(bytes.NewReader(good))
		require.NoError(t, err)
		require.Equal(t, v, got)
		require.Equal(t, reason, said)
		for bit := range 8 * len(good) {
			b := bytes.Clone(good)
			b[bit/8] ^= 1 << (bit % 8)
			got, said, err := readAnswer(bytes.NewReader(b))
			require.Error(t, err, "bit %d", bit)
			require.Zero(t, got)
			require.Empty(t, said)
			if at := bit / 8; at == 4 || at == 5 || at >= 8 {
				require.ErrorIs(t, err, membership.ErrDamaged, "bit %d", bit)
			}
		}
		for n := range good {
			_, _, err := readAnswer(bytes.NewReader(good[:n]))
			require.Error(t, err, "%d bytes", n)
		}
	}
}

// TestAnswersOfOthers: what is no answer of this protocol is none, though its checksum is
// right, and no more of it is read than the longest that there are.
func TestAnswersOfOthers(t *testing.T) {
	for says, change := range map[string]func(b []byte){
		"an answer of version 5 of the protocol, this is version 4: run the same build everywhere": func(b []byte) { b[4]++ },
		"an answer with verdict 0":              func(b []byte) { b[5] = 0 },
		"an answer with verdict 4":              func(b []byte) { b[5] = byte(notYet) + 1 },
		"an answer with a reason of 513 bytes:": func(b []byte) { binary.LittleEndian.PutUint16(b[6:], maxReason+1) },
		"another program listens there":         func(b []byte) { b[0]++ },
	} {
		b := make([]byte, answerBytes+maxReason+1)
		binary.LittleEndian.PutUint32(b, answerMagic)
		b[4], b[5] = WireVersion, byte(accepted)
		change(b)
		n := int(binary.LittleEndian.Uint16(b[6:]))
		sum := crc32.Update(crc32.Checksum(b[:8], castagnoli), castagnoli, b[answerBytes:][:n])
		binary.LittleEndian.PutUint32(b[8:], sum)
		_, _, err := readAnswer(bytes.NewReader(b))
		require.ErrorIs(t, err, ErrFrame)
		require.ErrorContains(t, err, says)
	}
}
