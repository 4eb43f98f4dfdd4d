package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"sync"

	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// lz4Raw is the codec LZ4_RAW, which has LZ4 blocks without frames. The library does not define
// it.
const lz4Raw = compress.Compression(7)

// unpackable reports whether pages of a codec can be decompressed.
func unpackable(codec compress.Compression) bool {
	cs := compress.Codecs
	return slices.Contains([]compress.Compression{cs.Uncompressed, cs.Snappy, cs.Gzip, cs.Brotli, cs.Zstd, lz4Raw}, codec)
}

// unpackPage decompresses a page to size bytes. It uses the memory of into if that suffices. It
// reads the compressed bytes to their end, so that checksum and length are verified if the
// format has them. If the compressed bytes cannot decompress to size bytes, unpackPage returns
// an error before it decompresses them. Memory for more than 32 times the compressed bytes is
// allocated only when the decompressed bytes need it. For LZ4, size bytes are allocated at
// once, after size has been compared with the sum of the lengths in the block.
func unpackPage(codec compress.Compression, into, packed []byte, size int64) (data []byte, err error) {
	if codec == compress.Codecs.Uncompressed {
		return packed, nil
	}
	if size == 0 {
		return nil, nil
	}
	defer func() {
		if v := recover(); v != nil { // some codecs panic if they cannot decompress the bytes
			err = fmt.Errorf("a page cannot be decompressed by %v: %v", codec, v)
		}
	}()
	least, most := bounds(codec, packed)
	wrong := fmt.Errorf("a page says that its %d bytes, compressed by %v, become %d, which they do not", len(packed), codec, size)
	if size < least || size > most {
		return nil, wrong
	}
	room := min(size+1, 64<<10+32*int64(len(packed)))
	if codec == lz4Raw {
		room = size
	}
	if int64(cap(into)) < room {
		into = make([]byte, 0, room)
	}
	switch codec {
	case compress.Codecs.Snappy:
		var unpack compress.Codec
		if unpack, err = compress.GetCodec(codec); err == nil {
			data = unpack.Decode(into[:size], packed)
		}
	case lz4Raw:
		var n int
		n, err = lz4.UncompressBlock(packed, into[:size])
		data = into[:max(n, 0)]
	case compress.Codecs.Zstd:
		data, err = readZstd(packed, into, size)
	case compress.Codecs.Brotli:
		data, err = readBrotli(packed, into, size)
	case compress.Codecs.Gzip:
		data, err = readGzip(packed, into, size)
	default:
		err = errors.New("it is not supported")
	}
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), err == nil && int64(len(data)) != size:
		return nil, wrong
	case err != nil:
		return nil, fmt.Errorf("a page cannot be decompressed by %v: %w", codec, err)
	}
	return data, nil
}

// bounds returns a lower and an upper bound of the number of bytes to which packed
// decompresses. They follow from sizes in packed or from the codec.
func bounds(codec compress.Compression, packed []byte) (least, most int64) {
	n := int64(len(packed))
	switch codec {
	case compress.Codecs.Snappy: // packed begins with the size; three compressed bytes give at most 64 bytes
		said, _ := binary.Uvarint(packed)
		least = int64(min(said, math.MaxInt64))
		return least, min(least, 22*n)
	case compress.Codecs.Gzip: // two compressed bits give at most 258 bytes
		return 0, 1032 * n
	case compress.Codecs.Zstd:
		return boundsOfZstd(packed)
	case lz4Raw:
		n = sizeOfLZ4(packed)
		return n, n
	}
	return 0, math.MaxInt64
}

// readPacked reads up to size+1 bytes from r, or fewer if r ends earlier. It uses the memory of
// into as long as that suffices.
func readPacked(r io.Reader, into []byte, size int64) ([]byte, error) {
	data := into[:0]
	for int64(len(data)) <= size {
		if len(data) == cap(data) {
			data = append(make([]byte, 0, min(size+1, 2*int64(cap(data)))), data...)
		}
		n, err := r.Read(data[len(data):min(int64(cap(data)), size+1)])
		if data = data[:len(data)+n]; err == io.EOF {
			return data, nil
		} else if err != nil {
			return data, err
		}
	}
	return data, nil
}

// gzipReaders has readers for reuse, because each reader takes 40 KiB.
var gzipReaders = sync.Pool{New: func() any { return new(gzip.Reader) }}

// readGzip decompresses up to size+1 bytes of gzip data like readPacked. It also decompresses
// zlib data, which some programs write although they name the codec gzip.
func readGzip(packed, into []byte, size int64) ([]byte, error) {
	from := bytes.NewReader(packed)
	if len(packed) > 2 && packed[0]&15 == 8 && binary.BigEndian.Uint16(packed)%31 == 0 {
		r, err := zlib.NewReader(from)
		if err != nil {
			return nil, err
		}
		data, err := readPacked(r, into, size)
		if err == nil && from.Len() > 0 {
			err = errors.New("there are bytes after its end")
		}
		return data, err
	}
	r := gzipReaders.Get().(*gzip.Reader)
	defer gzipReaders.Put(r)
	if err := r.Reset(from); err != nil {
		return nil, err
	}
	return readPacked(r, into, size)
}

// readBrotli decompresses up to size+1 bytes of brotli data like readPacked. Brotli's reader
// does not report that compressed bytes are cut off. So readBrotli gives it one more byte. The
// reader fails at this byte with errBrotliEnded if the compressed data was complete.
func readBrotli(packed, into []byte, size int64) ([]byte, error) {
	codec, err := compress.GetCodec(compress.Codecs.Brotli)
	if err != nil {
		return nil, err
	}
	more := bytes.NewReader([]byte{0})
	data, err := readPacked(codec.NewReader(io.MultiReader(bytes.NewReader(packed), more)), into, size)
	switch ended := errors.Is(err, errBrotliEnded()) && more.Len() == 0; {
	case ended:
		return data, nil
	case err == nil && int64(len(data)) <= size:
		return data, io.ErrUnexpectedEOF
	}
	return data, err
}

// errBrotliEnded returns the error of brotli's reader for bytes after the end of the data. It
// obtains the error by giving the reader empty data and one more byte.
var errBrotliEnded = sync.OnceValue(func() error {
	codec, err := compress.GetCodec(compress.Codecs.Brotli)
	if err == nil {
		_, err = io.ReadAll(codec.NewReader(bytes.NewReader([]byte{6, 0})))
	}
	return err
})

// sizeOfLZ4 returns the number of bytes to which an LZ4 block decompresses, the sum of the
// lengths of its literals and matches. It returns -1 if the block is cut off.
func sizeOfLZ4(packed []byte) (size int64) {
	at := 0
	length := func(n int) int { // a length of 15 continues in further bytes, of which the last is below 255
		for more := n == 15; more; at++ {
			if at >= len(packed) {
				return -1
			}
			n += int(packed[at])
			more = packed[at] == 255
		}
		return n
	}
	for at < len(packed) {
		token := int(packed[at])
		at++
		literals := length(token >> 4)
		if literals < 0 || literals > len(packed)-at {
			return -1
		}
		at += literals
		size += int64(literals)
		if at == len(packed) { // no match follows the last literals
			return size
		}
		at += 2 // the offset of the match
		copied := length(token & 15)
		if copied < 0 || at > len(packed) {
			return -1
		}
		size += int64(copied) + 4
	}
	return size
}
