package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/klauspost/compress/zstd"
)

// unpackPage returns the size bytes that a page was packed from; they may lie in into. The packed
// bytes are read to their end, so that their checksum and length are verified where they have
// them. No more memory is taken than the size, nor than the packed bytes can become.
func unpackPage(codec compress.Compression, into, packed []byte, size int64) (data []byte, err error) {
	if codec == compress.Codecs.Uncompressed {
		return packed, nil
	}
	if size == 0 {
		return nil, nil
	}
	unpack, err := compress.GetCodec(codec)
	if err != nil {
		return nil, err
	}
	defer func() {
		if v := recover(); v != nil { // as is the codecs' way to say that they cannot
			err = fmt.Errorf("a page cannot be unpacked by %v: %v", codec, v)
		}
	}()
	wrong := fmt.Errorf("a page says that its %d bytes, packed by %v, become %d, which they do not", len(packed), codec, size)
	most := 1032 * int64(len(packed)) // that they become; of gzip two bits become 258 bytes at most
	room := size + 1
	switch codec {
	case compress.Codecs.Snappy: // says how many it becomes; three bytes become 64 at most
		if n, _ := binary.Uvarint(packed); n != uint64(size) {
			return nil, wrong
		}
		most = 22 * int64(len(packed))
	case compress.Codecs.Zstd:
		most = mostOfZstd(packed)
	case compress.Codecs.Brotli: // has no bound: memory grows as it is read
		most, room = size, min(room, most)
	}
	if size > most {
		return nil, wrong
	}
	if int64(cap(into)) <= size {
		into = make([]byte, 0, room)
	}
	switch codec {
	case compress.Codecs.Snappy:
		data = unpack.Decode(into[:size], packed)
	case compress.Codecs.Zstd:
		data, err = zstdDecoder().DecodeAll(packed, into[:0:size+1])
	case compress.Codecs.Brotli:
		data, err = readBrotli(unpack, packed, into, size)
	default:
		data, err = readPacked(unpack.NewReader(bytes.NewReader(packed)), into, size)
	}
	switch {
	case errors.Is(err, zstd.ErrDecoderSizeExceeded), err == nil && int64(len(data)) != size:
		return nil, wrong
	case err != nil:
		return nil, fmt.Errorf("a page cannot be unpacked by %v: %w", codec, err)
	}
	return data, nil
}

// readPacked reads up to size+1 bytes, to the end if there are no more. They lie in into as far as
// that has room.
func readPacked(r io.Reader, into []byte, size int64) ([]byte, error) {
	data := into[:0]
	for int64(len(data)) <= size {
		if len(data) == cap(data) {
			data = append(make([]byte, 0, min(size+1, 512+2*int64(cap(data)))), data...)
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

// readBrotli is readPacked for brotli, whose reader takes the end of the packed bytes for that of
// the data. So it is given one byte more, of which it says that it is too much if the data ended.
func readBrotli(codec compress.Codec, packed, into []byte, size int64) ([]byte, error) {
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

// errBrotliEnded is the error of bytes after the end, here that of nothing.
var errBrotliEnded = sync.OnceValue(func() error {
	codec, err := compress.GetCodec(compress.Codecs.Brotli)
	if err == nil {
		_, err = io.ReadAll(codec.NewReader(bytes.NewReader([]byte{6, 0})))
	}
	return err
})

// zstdDecoder unpacks no more than there is room for.
var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderConcurrency(0))
	if err != nil {
		panic(err) // as options that are constants do not fail
	}
	return d
})

// mostOfZstd returns how many bytes packed ones can become, by the heads of their blocks.
func mostOfZstd(packed []byte) (most int64) {
	const (
		head      = 3 // bytes of the head of a block
		raw, same = 0, 1
		block     = 128 << 10 // bytes that one of another kind can become
	)
	cut := func(n int) { packed = packed[min(n, len(packed)):] }
	for {
		var frame zstd.Header
		if frame.Decode(packed) != nil {
			return most
		}
		cut(frame.HeaderSize)
		if frame.Skippable {
			cut(int(frame.SkippableSize))
			continue
		}
		for last := false; !last && len(packed) >= head; {
			b := int(packed[0]) | int(packed[1])<<8 | int(packed[2])<<16
			size := b >> 3
			last = b&1 == 1
			cut(head)
			switch b >> 1 & 3 {
			case raw:
				most += int64(size)
			case same:
				most += int64(size)
				size = 1
			default:
				most += block
			}
			cut(size)
		}
		if frame.HasCheckSum {
			cut(4)
		}
	}
}
