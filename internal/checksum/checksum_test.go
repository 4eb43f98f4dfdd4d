package checksum

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// take returns the sum of data that stream s computes. The bytes arrive in buffers of random
// lengths, and each buffer is filled in several random steps.
func take(s *Stream, data []byte, draw *rand.Rand) Sum {
	s.Reset()
	for {
		n := min(len(data), 1+draw.IntN(3*PieceBytes))
		dst := data[:n:n]
		data = data[n:]
		rest, left := dst, 0
		for got := 0; got < n; {
			k := min(n-got, 1+draw.IntN(PieceBytes))
			got += k
			rest, left = s.Arrived(rest, left+k)
		}
		if len(data) == 0 {
			return s.End(rest[:left])
		}
		s.Leave(rest[:left])
	}
}

func TestStreamEqualsOf(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 5*PieceBytes)
	for i := range data {
		data[i] = byte(draw.Uint32())
	}
	var s Stream
	for _, n := range []int{0, 1, 8, PieceBytes - 1, PieceBytes, PieceBytes + 1, 2 * PieceBytes, 3*PieceBytes + 77, len(data)} {
		for range 20 {
			require.Equal(t, Of(data[:n]), take(&s, data[:n], draw), n)
		}
	}
}

// TestChangesShow requires that the sum changes if a bit is flipped, pieces are exchanged or
// repeated, or the length changes.
func TestChangesShow(t *testing.T) {
	draw := rand.New(rand.NewPCG(3, 4))
	data := make([]byte, 3*PieceBytes+1000)
	for i := range data {
		data[i] = byte(draw.Uint32())
	}
	want := Of(data).Bits()
	for range 300 {
		at, bit := draw.IntN(len(data)), byte(1)<<draw.IntN(8)
		data[at] ^= bit
		require.NotEqual(t, want, Of(data).Bits(), at)
		data[at] ^= bit
	}
	require.Equal(t, want, Of(data).Bits())
	require.NotEqual(t, want, Of(data[:len(data)-1]).Bits(), "the loss of a byte must change the sum")
	require.NotEqual(t, want, Of(append(data[:len(data):len(data)], 0)).Bits(), "an additional byte must change the sum")
	swapped := append(append(append([]byte(nil), data[PieceBytes:2*PieceBytes]...), data[:PieceBytes]...), data[2*PieceBytes:]...)
	require.NotEqual(t, want, Of(swapped).Bits())
	twice := append([]byte(nil), data...)
	copy(twice[PieceBytes:], data[:PieceBytes])
	require.NotEqual(t, want, Of(twice).Bits())
	require.NotEqual(t, Of(make([]byte, 8)), Of(make([]byte, 9)), "the sum of zeroes must depend on their number")
}

func BenchmarkOf(b *testing.B) {
	data := make([]byte, 1<<20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		Of(data)
	}
}
