package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
	"github.com/stretchr/testify/require"
)

// zeros returns n zero bytes, compressed by a codec.
func zeros(t testing.TB, codec compress.Compression, n int) []byte {
	if codec == lz4Raw {
		return packLZ4(t, make([]byte, n))
	}
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

func packLZ4(t testing.TB, data []byte) []byte {
	packed := make([]byte, lz4.CompressBlockBound(len(data)))
	var c lz4.Compressor
	n, err := c.CompressBlock(data, packed)
	require.NoError(t, err)
	require.Positive(t, n)
	return packed[:n]
}

// These are kinds of blocks of zstd.
const zstdRaw, zstdSame, zstdPacked = 0, 1, 2

// zstdBlocks returns the given number of blocks of a kind. Their headers claim size bytes. The
// content of each block is the bytes in has.
func zstdBlocks(blocks, kind int, size uint32, has ...byte) (data []byte) {
	for i := range blocks {
		head := binary.LittleEndian.AppendUint32(nil, size<<3|uint32(kind)<<1)
		if i == blocks-1 {
			head[0] |= 1
		}
		data = append(append(data, head[:3]...), has...)
	}
	return data
}

// zstdFrame returns a frame of the given blocks. Its header claims a content of size bytes, or
// has no size if size is 0.
func zstdFrame(size uint32, blocks []byte) []byte {
	const window = 0x58
	if size == 0 {
		return append([]byte{0x28, 0xb5, 0x2f, 0xfd, 0, window}, blocks...)
	}
	return append(binary.LittleEndian.AppendUint32([]byte{0x28, 0xb5, 0x2f, 0xfd, 0xa0}, size), blocks...)
}

// zstdZeros returns a frame of the given number of blocks of 128 KiB of zeros. Its header has
// no size.
func zstdZeros(blocks int) []byte {
	return zstdFrame(0, zstdBlocks(blocks, zstdSame, 128<<10, 0))
}

// TestPackedToTheEnd requires an error for compressed bytes that are cut off or continued after
// their end. Changed bytes must give an error or decompress to the same content.
func TestPackedToTheEnd(t *testing.T) {
	want := bytes.Repeat([]byte("page and "), 100)
	for _, codec := range []compress.Compression{compress.Codecs.Snappy, compress.Codecs.Gzip, compress.Codecs.Zstd, compress.Codecs.Brotli, lz4Raw} {
		var packed []byte
		if codec == lz4Raw {
			packed = packLZ4(t, want)
		} else {
			c, err := compress.GetCodec(codec)
			require.NoError(t, err)
			packed = c.Encode(nil, want)
		}
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
				require.Error(t, err, "%v: the first %d of %d bytes must give an error", codec, n, len(packed))
			}
			_, err = unpackPage(codec, room, append(bytes.Clone(packed), 0), int64(len(want)))
			require.Error(t, err, codec)
		}
		if codec == compress.Codecs.Snappy || codec == compress.Codecs.Brotli || codec == lz4Raw {
			continue // these codecs have no checksum
		}
		for bit := range 8 * len(packed) {
			damaged := bytes.Clone(packed)
			damaged[bit/8] ^= 1 << (bit % 8)
			if data, err := unpackPage(codec, into, damaged, int64(len(want))); err == nil {
				require.Equal(t, want, data, "%v: with bit %d changed, the content must be the same or there must be an error", codec, bit)
			}
		}
	}
}

// TestCompressedPagesWithFalseSizes requires that decompressing bytes that claim far more
// content than they have takes memory only in proportion to the number of these bytes.
func TestCompressedPagesWithFalseSizes(t *testing.T) {
	const mega = 1 << 20
	cs := compress.Codecs
	noise := make([]byte, 60_000)
	for i := range noise {
		noise[i] = byte(i * i >> 7)
	}
	brotli, err := compress.GetCodec(cs.Brotli)
	require.NoError(t, err)
	gzip, err := compress.GetCodec(cs.Gzip)
	require.NoError(t, err)
	bytesOfFrame := zstdFrame(0, zstdBlocks(1, zstdRaw, 1<<21-1))
	for name, c := range map[string]struct {
		codec  compress.Compression
		packed []byte
		size   int64
	}{
		"zstd, blocks of 2 MiB of a byte":    {cs.Zstd, zstdFrame(0, zstdBlocks(1025, zstdSame, 1<<21-1, 0)), 1<<31 - 1},
		"zstd, frames of such a block":       {cs.Zstd, bytes.Repeat(zstdFrame(0, zstdBlocks(1, zstdSame, 1<<21-1, 0)), 1025), 1<<31 - 1},
		"zstd, a block of 2 MiB":             {cs.Zstd, bytesOfFrame, 1<<21 - 1},
		"zstd, many of them":                 {cs.Zstd, bytes.Repeat(bytesOfFrame, 1025), 1<<31 - 1},
		"zstd, raw blocks without bytes":     {cs.Zstd, zstdFrame(0, zstdBlocks(1000, zstdRaw, 128<<10)), 128_000 << 10},
		"zstd, packed blocks of one byte":    {cs.Zstd, zstdFrame(0, zstdBlocks(1<<14, zstdPacked, 1, 0)), 1<<31 - 1},
		"zstd, packed blocks of nothing":     {cs.Zstd, zstdFrame(0, zstdBlocks(4000, zstdPacked, 5, 0, 0, 0, 0, 0)), 4000 * 128 << 10},
		"zstd, packed blocks that say more":  {cs.Zstd, zstdFrame(500*mega, zstdBlocks(4000, zstdPacked, 5, 255, 255, 255, 255, 255)), 500 * mega},
		"zstd, a frame that says more":       {cs.Zstd, zstdFrame(500*mega, zstdBlocks(1, zstdSame, 128<<10, 0)), 500 * mega},
		"zstd, blocks that say less":         {cs.Zstd, zstdFrame(mega, zstdBlocks(4000, zstdSame, 128<<10, 0)), 500 * mega},
		"zstd, blocks of which some are bad": {cs.Zstd, zstdFrame(500*mega, append(zstdBlocks(1, zstdSame, 1000, 0)[:3], append([]byte{0}, zstdBlocks(4000, zstdPacked, 5, 0, 0, 0, 0, 0)...)...)), 500 * mega},
		"gzip":                               {cs.Gzip, gzip.Encode(nil, noise), 1000 * int64(len(gzip.Encode(nil, noise)))},
		"gzip, little":                       {cs.Gzip, gzip.Encode(nil, noise[:9]), 20_000},
		"brotli":                             {cs.Brotli, brotli.Encode(nil, noise[:100]), 1<<31 - 1},
		"LZ4":                                {lz4Raw, packLZ4(t, make([]byte, 200_000))[:700], 1<<31 - 1},
	} {
		var err error
		taken := allocated(func() { _, err = unpackPage(c.codec, nil, c.packed, c.size) })
		require.Error(t, err, name)
		most := uint64(2*mega + 33*len(c.packed))
		if c.codec == cs.Brotli {
			most += 2 * mega
		}
		require.Less(t, taken, most, name)
	}
}

// TestBoundsOfZstd requires that boundsOfZstd counts at most 128 KiB for a block, and nothing
// for an invalid block and what follows it.
func TestBoundsOfZstd(t *testing.T) {
	const block = 128 << 10
	same := zstdBlocks(2, zstdSame, block, 0)
	for name, c := range map[string]struct {
		packed      []byte
		least, most int64
	}{
		"ordinary":          {zstdFrame(0, same), 0, 2 * block},
		"two frames":        {append(zstdFrame(0, same), zstdFrame(0, same)...), 0, 4 * block},
		"less by its head":  {zstdFrame(1000, same), 1000, 1000},
		"more by its head":  {zstdFrame(1<<30, same), 2 * block, 2 * block},
		"large":             {zstdFrame(0, zstdBlocks(2, zstdSame, block+1, 0)), 0, 0},
		"a large one later": {zstdFrame(0, append(zstdBlocks(2, zstdSame, 10, 0)[:4], zstdBlocks(1, zstdRaw, block+1)...)), 0, 10},
		"raw":               {zstdFrame(0, zstdBlocks(1, zstdRaw, 3, 1, 2, 3)), 0, 3},
		"raw and cut":       {zstdFrame(0, zstdBlocks(1, zstdRaw, 3, 1, 2)), 0, 2},
		"packed":            {zstdFrame(0, zstdBlocks(2, zstdPacked, 2, 0, 0)), 0, 2 * block},
		"packed, too small": {zstdFrame(0, zstdBlocks(2, zstdPacked, 1, 0)), 0, 0},
		"reserved":          {zstdFrame(0, zstdBlocks(2, 3, 2, 0, 0)), 0, 0},
		"no frame":          {[]byte{1, 2, 3}, 0, 0},
	} {
		least, most := boundsOfZstd(c.packed)
		require.Equal(t, []int64{c.least, c.most}, []int64{least, most}, name)
	}
}

// TestZstdThatBecomesMuch decompresses frames with so much content that memory is allocated for
// it in several steps. It requires that the frames are read to their end, and that the sizes in
// their headers are checked.
func TestZstdThatBecomesMuch(t *testing.T) {
	const size = 2000 + 40*128<<10
	raw := make([]byte, 2000)
	raw[1999] = 7
	want := append(bytes.Clone(raw), make([]byte, size-2000)...)
	blocks := append(append([]byte{2000 << 3 & 255, 2000 >> 5, 0}, raw...), zstdBlocks(40, zstdSame, 128<<10, 0)...)
	for _, said := range []uint32{0, size} {
		good := zstdFrame(said, blocks)
		data, err := unpackPage(compress.Codecs.Zstd, nil, good, size)
		require.NoError(t, err)
		require.Equal(t, want, data)
		for _, more := range [][]byte{{0}, good[:10], {0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1}} {
			_, err = unpackPage(compress.Codecs.Zstd, nil, append(bytes.Clone(good), more...), size)
			require.Error(t, err, more)
		}
		_, err = unpackPage(compress.Codecs.Zstd, nil, good[:len(good)-1], size)
		require.Error(t, err)
	}
	_, err := unpackPage(compress.Codecs.Zstd, nil, zstdFrame(size-1, blocks), size)
	require.ErrorContains(t, err, "which they do not")
	_, err = unpackPage(compress.Codecs.Zstd, nil, append(zstdFrame(1, nil), blocks...), size)
	require.ErrorContains(t, err, "which they do not")
}

// TestValuesBoundPages requires that a page or a dictionary that claims to decompress to more
// bytes than its values and levels can take is refused before it is decompressed. A few more
// bytes must be accepted.
func TestValuesBoundPages(t *testing.T) {
	const mega = 1 << 20
	bomb := zstdZeros(80)
	for _, c := range []struct {
		values   decoder
		encoding int64
		most     int64 // largest number of bytes of 1000 values; 0 means unbounded
	}{
		{&numbers[float64]{}, plain, 8000}, {&numbers[float32]{}, plain, 4000}, {&numbers[int64]{times96: true}, plain, 12_000}, {&numbers[int32]{}, byteStreamSplit, 4000},
		{&numbers[int64]{}, rleDictionary, 9004}, {&texts{}, plainDictionary, 9004}, {&truths{}, plain, 125}, {&truths{}, rle, 9004},
		{&texts{}, plain, 0}, {&texts{}, deltaBytes, 0}, {&numbers[int64]{}, deltaBinary, 0},
	} {
		for levels := range int64(3) {
			name := fmt.Sprintf("%T, %d, %d", c.values, c.encoding, levels)
			l := leaf{codec: compress.Codecs.Zstd, values: c.values}
			h := head{encoding: c.encoding, values: 1000}
			if c.most == 0 {
				data, err := l.unpack(nil, bomb, h, 10*mega, levels)
				require.NoError(t, err, name)
				require.Len(t, data, 10*mega)
				continue
			}
			var err error
			taken := allocated(func() { _, err = l.unpack(nil, bomb, h, 10*mega, levels) })
			require.EqualError(t, err, fmt.Sprintf("a page with 1000 values says that it becomes 10485760 bytes, and these values take %d at most", c.most+9004*levels), name)
			require.Less(t, taken, uint64(mega), name)
			data, err := l.unpack(nil, zstdZeros(1), h, 128<<10, 16)
			require.NoError(t, err, name)
			require.Len(t, data, 128<<10)
		}
	}
	l := leaf{codec: compress.Codecs.Zstd, values: &numbers[float64]{}}
	require.ErrorContains(t, l.readDictionary(head{encoding: plainDictionary, values: 1000, size: 10 * mega}, bomb), "these values take 8000 at most")
}

// TestZlibPages requires that pages may have zlib's format if the footer says gzip, and that
// they are read to their end.
func TestZlibPages(t *testing.T) {
	want := bytes.Repeat([]byte("page and "), 100)
	for _, level := range []int{zlib.NoCompression, zlib.BestSpeed, zlib.DefaultCompression, zlib.BestCompression} {
		var out bytes.Buffer
		w, err := zlib.NewWriterLevel(&out, level)
		require.NoError(t, err)
		_, err = w.Write(want)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		for n := range out.Len() {
			_, err := unpackPage(compress.Codecs.Gzip, nil, out.Bytes()[:n], int64(len(want)))
			require.Error(t, err, n)
		}
		data, err := unpackPage(compress.Codecs.Gzip, nil, out.Bytes(), int64(len(want)))
		require.NoError(t, err)
		require.Equal(t, want, data)
		_, err = unpackPage(compress.Codecs.Gzip, nil, append(out.Bytes(), 0), int64(len(want)))
		require.ErrorContains(t, err, "bytes after its end")
	}
}

// TestSnappyThatSaysMore requires that the size in snappy's header is checked against the
// number of compressed bytes.
func TestSnappyThatSaysMore(t *testing.T) {
	const claim = 1 << 30
	packed := append(binary.AppendUvarint(nil, claim), 0, 0)
	var err error
	bytes := allocated(func() { _, err = unpackPage(compress.Codecs.Snappy, nil, packed, claim) })
	require.ErrorContains(t, err, "which they do not")
	require.Less(t, bytes, uint64(1<<20))
}

// TestZstdOfRealEncoders decompresses repetitive pages that were compressed by zstd's encoder
// to a small part of their size. It requires the same result for an initial buffer of any size,
// and that decompression stops at the size of the page.
func TestZstdOfRealEncoders(t *testing.T) {
	for _, level := range []zstd.EncoderLevel{zstd.SpeedFastest, zstd.SpeedDefault, zstd.SpeedBestCompression} {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(level))
		require.NoError(t, err)
		for _, n := range []int{1000, 70_000, 100_003, 131_072, 131_073, 400_000, 1 << 20, 3_000_000} {
			for _, period := range []int{1, 8, 9, 1000} {
				want := make([]byte, n)
				for i := range want {
					want[i] = byte(i % period * 7)
				}
				one := e.EncodeAll(want, nil)
				two := e.EncodeAll(want[n/3:], e.EncodeAll(want[:n/3], nil))
				for _, packed := range [][]byte{one, two} {
					for _, room := range []int{0, n / 2, n - 1, n, n + 1} {
						got, err := unpackPage(compress.Codecs.Zstd, make([]byte, 0, room), packed, int64(n))
						require.NoError(t, err, "%d bytes of period %d at level %v must be decompressed with room %d", n, period, level, room)
						require.True(t, bytes.Equal(want, got))
					}
					_, err := unpackPage(compress.Codecs.Zstd, nil, packed, int64(n-1))
					require.Error(t, err)
				}
			}
		}
		require.NoError(t, e.Close())
	}
}
