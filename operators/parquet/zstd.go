package parquet

import (
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// zstdDecoder returns a decoder that fails if the decompressed bytes exceed the capacity of the
// given buffer.
var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecodeAllCapLimit(true), zstd.WithDecoderConcurrency(0))
	if err != nil {
		panic(err) // does not happen, because the options are constants
	}
	return d
})

// readZstd decompresses up to size+1 bytes. It uses the memory of into if that suffices, and
// otherwise tries again with buffers that are each four times as large as the previous one.
func readZstd(packed, into []byte, size int64) ([]byte, error) {
	d := zstdDecoder()
	if int64(cap(into)) > size {
		return d.DecodeAll(packed, into[:0:size+1])
	}
	packed = sizelessZstd(packed)
	for {
		data, err := d.DecodeAll(packed, into[:0])
		room := int64(cap(into))
		full := err != nil && room-int64(len(data)) < mostOfBlock // for a full buffer the decoder may return errors other than ErrDecoderSizeExceeded
		if room > size || !full && !errors.Is(err, zstd.ErrDecoderSizeExceeded) {
			return data, err
		}
		into = make([]byte, 0, min(4*room, size+1))
	}
}

// mostOfBlock is the largest number of bytes to which a block of zstd can decompress (RFC 8878,
// section 3.1.1.2.4).
const mostOfBlock = 128 << 10

// boundsOfZstd returns a lower and an upper bound of the number of bytes to which packed
// decompresses, according to the headers of its frames and blocks. An invalid block and
// everything after it are not counted.
func boundsOfZstd(packed []byte) (least, most int64) {
	framesOfZstd(packed, func(h zstd.Header, _ []byte, blocks int64) {
		if h.HasFCS {
			blocks = min(blocks, int64(min(h.FrameContentSize, 1<<62)))
			least += blocks
		}
		most += blocks
	})
	return least, most
}

// sizelessZstd returns packed with the content sizes removed from the headers of its frames. If
// a header has a size that exceeds the capacity of the buffer, the decoder returns an error
// before it decompresses anything. Without sizes it can be tried with a small buffer.
func sizelessZstd(packed []byte) (frames []byte) {
	rest := framesOfZstd(packed, func(h zstd.Header, frame []byte, _ int64) {
		body := frame[h.HeaderSize:]
		if h.SingleSegment {
			h.SingleSegment, h.WindowSize = false, max(h.FrameContentSize, zstd.MinWindowSize)
		}
		h.FrameContentSize = 0
		frames, _ = h.AppendTo(frames)
		frames = append(frames, body...)
	})
	return append(frames, rest...)
}

// framesOfZstd calls frame for each frame, with its header, its bytes, and the largest number
// of bytes to which its blocks can decompress. If the last block of a frame is missing or a
// block is invalid, the frame's bytes are all remaining bytes. It returns the bytes after the
// last frame.
func framesOfZstd(packed []byte, frame func(h zstd.Header, frame []byte, blocks int64)) (rest []byte) {
	for {
		var h zstd.Header
		if h.Decode(packed) != nil {
			return packed
		}
		if h.Skippable {
			size := h.HeaderSize + int(h.SkippableSize)
			if size > len(packed) {
				return packed
			}
			packed = packed[size:]
			continue
		}
		size, blocks, whole := blocksOfZstd(packed[h.HeaderSize:])
		size += h.HeaderSize
		if h.HasCheckSum {
			size += 4
		}
		if !whole || size > len(packed) {
			size = len(packed)
		}
		frame(h, packed[:size], blocks)
		packed = packed[size:]
	}
}

// blocksOfZstd returns the size of the blocks of a frame, and the largest number of bytes to
// which they can decompress. whole is false if the last block is missing or a block is invalid.
func blocksOfZstd(data []byte) (size int, most int64, whole bool) {
	const (
		head              = 3 // bytes of the head of a block
		raw, same, packed = 0, 1, 2
	)
	for size+head <= len(data) {
		b := int(data[size]) | int(data[size+1])<<8 | int(data[size+2])<<16
		n, kind := b>>3, b>>1&3
		size += head
		switch {
		case n > mostOfBlock, kind > packed, kind == packed && n < 2:
			return size, most, false
		case kind == raw:
			most += int64(min(n, len(data)-size))
		case kind == same:
			most += int64(n)
			n = 1
		default:
			most += mostOfBlock
		}
		if size += n; b&1 == 1 {
			return size, most, true
		}
	}
	return size, most, false
}
