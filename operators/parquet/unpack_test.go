package parquet

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// zeros returns so many zeros, packed by a codec.
func zeros(t testing.TB, codec compress.Compression, n int) []byte {
	c, err := compress.GetCodec(codec)
	require.NoError(t, err)
	if codec == compress.Codecs.Snappy {
		return c.Encode(nil, make([]byte, n))
	}
	var out bytes.Buffer
	w := c.NewWriter(&out)
	_, err = w.Write(make([]byte, n))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.Bytes()
}

// zstdZeros is a frame of blocks of 128 KiB of zeros that does not tell its size.
func zstdZeros(blocks int) []byte {
	const size, repeated, window = 128 << 10, 1 << 1, 0x38
	frame := []byte{0x28, 0xb5, 0x2f, 0xfd, 0, window}
	for i := range blocks {
		head := binary.LittleEndian.AppendUint32(nil, size<<3|repeated)
		if i == blocks-1 {
			head[0] |= 1
		}
		frame = append(frame, head[0], head[1], head[2], 0)
	}
	return frame
}

// TestPackedBombs: what becomes more than its page says is refused, whatever the packed bytes say,
// and before memory is taken for it; so is what becomes less.
func TestPackedBombs(t *testing.T) {
	const mega = 1 << 20
	cs := compress.Codecs
	small := zeros(t, cs.Zstd, 8)
	for name, c := range map[string]struct {
		codec  compress.Compression
		packed []byte
		size   int64
		most   uint64
	}{
		"snappy":                {cs.Snappy, zeros(t, cs.Snappy, 64*mega), 64 * mega, mega},
		"gzip":                  {cs.Gzip, zeros(t, cs.Gzip, 64*mega), 64 * mega, mega},
		"brotli":                {cs.Brotli, zeros(t, cs.Brotli, 64*mega), 64 * mega, 24 * mega},
		"zstd, size unknown":    {cs.Zstd, zstdZeros(512), 64 * mega, mega},
		"zstd, a second frame":  {cs.Zstd, append(bytes.Clone(small), zstdZeros(512)...), 64*mega + 8, mega},
		"zstd, what is skipped": {cs.Zstd, append([]byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}, zstdZeros(512)...), 64 * mega, mega},
	} {
		for _, size := range []int64{1, 8, 8000, c.size - 1, c.size + 1, 1<<31 - 1} {
			most := c.most
			if size > 8000 {
				most = 0 // what is taken is what the packed bytes become, or say they do
			}
			if size == 1<<31-1 && c.codec == cs.Brotli {
				continue // of which nothing tells how many there are before they are read
			}
			var err error
			bytes := allocated(func() { _, err = unpackPage(c.codec, nil, c.packed, size) })
			require.ErrorContains(t, err, "which they do not", "%s, %d", name, size)
			if most > 0 {
				require.Less(t, bytes, most, "%s, %d", name, size)
			} else {
				require.Less(t, bytes, uint64(3*c.size+mega), "%s, %d", name, size)
			}
		}
		data, err := unpackPage(c.codec, nil, c.packed, c.size)
		require.NoError(t, err, name)
		require.Equal(t, make([]byte, c.size), data, name)
	}
}

// TestPackedToTheEnd: packed bytes of which some are missing, too many or changed are refused, or
// become what they did; nothing is read over.
func TestPackedToTheEnd(t *testing.T) {
	want := bytes.Repeat([]byte("page and "), 100)
	for _, codec := range []compress.Compression{compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Zstd, compress.Codecs.Brotli} {
		c, err := compress.GetCodec(codec)
		require.NoError(t, err)
		packed := c.Encode(nil, want)
		if codec == compress.Codecs.Zstd {
			var head zstd.Header
			require.NoError(t, head.Decode(packed))
			require.True(t, head.HasCheckSum)
		}
		into := make([]byte, 0, 2*len(want))
		for _, room := range [][]byte{nil, into} {
			data, err := unpackPage(codec, room, packed, int64(len(want)))
			require.NoError(t, err, codec)
			require.Equal(t, want, data)
			for n := range packed {
				_, err := unpackPage(codec, room, packed[:n], int64(len(want)))
				require.Error(t, err, "%v, %d of %d bytes", codec, n, len(packed))
			}
			_, err = unpackPage(codec, room, append(bytes.Clone(packed), 0), int64(len(want)))
			require.Error(t, err, codec)
		}
		if codec == compress.Codecs.Snappy || codec == compress.Codecs.Brotli {
			continue // which have no checksum
		}
		for bit := range 8 * len(packed) {
			damaged := bytes.Clone(packed)
			damaged[bit/8] ^= 1 << (bit % 8)
			if data, err := unpackPage(codec, into, damaged, int64(len(want))); err == nil {
				require.Equal(t, want, data, "%v, bit %d", codec, bit)
			}
		}
	}
}

// TestSnappyThatSaysMore: how many bytes snappy says it becomes is compared with those it has.
func TestSnappyThatSaysMore(t *testing.T) {
	const claim = 1 << 30
	packed := append(binary.AppendUvarint(nil, claim), 0, 0)
	var err error
	bytes := allocated(func() { _, err = unpackPage(compress.Codecs.Snappy, nil, packed, claim) })
	require.ErrorContains(t, err, "which they do not")
	require.Less(t, bytes, uint64(1<<20))
}
