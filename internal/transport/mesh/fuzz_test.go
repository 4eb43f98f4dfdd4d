package mesh

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// resum corrects the checksum at the end of b, so that decode goes on to check the other
// fields.
func resum(b []byte) {
	n := len(b) - 4
	binary.LittleEndian.PutUint32(b[n:], checksum.CRC32C(0, b[:n]))
}

// FuzzHeader requires that every header that decode accepts is within bounds, and that encode
// returns the same bytes for it.
func FuzzHeader(f *testing.F) {
	ours := fence{attempt: 4, group: groupHash("test"), limit: 1 << 20, summed: true}
	bare, before, after, foreign := ours, ours, ours, ours
	bare.summed = false
	before.attempt--
	after.attempt++
	foreign.group++
	for _, from := range []fence{ours, bare, before, after, foreign} {
		for i, h := range []Header{{}, {Absent: true, Seq: 1}, {Absent: true, Length: 1}, headerOf(3, 4, 5, 6, 1<<20), headerOf(1, 2, 3, 4, 1<<20+1), {Length: 1<<32 - 1}} {
			var b [headerBytes]byte
			from.encode(&b, &h, uint32(i)<<14, payloadSum{uint32(i), i == 3})
			f.Add(b[:], false, uint32(i)<<14, from.summed)
			for _, at := range []int{0, versionAt, flagsAt, 12, lengthAt, headerSumFrom} {
				b[at] ^= 0x41
				f.Add(bytes.Clone(b[:]), true, uint32(i)<<14, from.summed)
				b[at] ^= 0x41
			}
			f.Add(b[:flagsAt], true, uint32(0), true)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, repair bool, number uint32, summed bool) {
		fence := fence{attempt: 4, group: groupHash("test"), limit: 1 << 20, summed: summed}
		var b, back [headerBytes]byte
		copy(b[:], data)
		if repair {
			resum(b[:])
		}
		var h Header
		s, err := fence.decode(&b, &h, number)
		if err != nil {
			require.Equal(t, Header{}, h, "decode must not change h if it refuses the header")
			return
		}
		require.LessOrEqual(t, h.Length, uint32(fence.limit))
		require.False(t, h.Absent && h.Length > 0)
		fence.encode(&back, &h, number, s)
		require.Equal(t, b, back)
	})
}

func TestDecodingAllocatesNothing(t *testing.T) {
	fence := fence{attempt: 4, group: 5, limit: 1 << 20}
	var b [headerBytes]byte
	h := headerOf(1, 2, 3, 4, 5)
	got := new(Header)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		fence.encode(&b, &h, 7, payloadSum{})
		_, _ = fence.decode(&b, got, 7)
	}))
	require.Equal(t, h, *got)
}
