package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Compression codecs of bodies, as numbered by the enum CompressionType of the Arrow format.
const (
	lz4Frames = 0
	zstdBody  = 1
)

// packed describes the compressed buffers of a record batch, according to its metadata. The
// zero value stands for an uncompressed body.
type packed struct {
	is      bool
	codec   byte
	buffers int64 // position in the metadata of the entry of the first buffer; an entry has 16 bytes: offset and length
	count   int64
}

// notPacked precedes, in place of the uncompressed length, a buffer that is not compressed
// although the body is.
const notPacked = -1

// maxWindow bounds the window of a zstd frame, which the decoder allocates before it
// decompresses anything.
const maxWindow = 128 << 20

// unpacker decompresses the bodies of record batches into a buffer that it reuses. It does not
// allocate memory by the lengths in the input: the buffer grows as bytes are decompressed.
type unpacker struct {
	plain []byte
	zstd  *zstd.Decoder
	lz4   *lz4.Reader
}

// unpack returns the body with every buffer uncompressed and preceded by notPacked, and writes
// the new positions of the buffers to meta. This replaces the decompression of Arrow's decoder,
// which would trust the lengths of compressed buffers.
func (u *unpacker) unpack(p packed, meta, body []byte) ([]byte, error) {
	u.plain = u.plain[:0]
	for i := range p.count {
		at := meta[p.buffers+16*i:]
		offset, length := int64(binary.LittleEndian.Uint64(at)), int64(binary.LittleEndian.Uint64(at[8:]))
		for len(u.plain)%8 != 0 {
			u.plain = append(u.plain, 0)
		}
		begin := len(u.plain)
		if length > 0 {
			if err := u.buffer(p.codec, body[offset:][:length]); err != nil {
				return nil, fmt.Errorf("buffer %d of a compressed batch: %w", i, err)
			}
		}
		binary.LittleEndian.PutUint64(at, uint64(begin))
		binary.LittleEndian.PutUint64(at[8:], uint64(len(u.plain)-begin))
	}
	return u.plain, nil
}

// buffer appends one buffer, uncompressed, to u.plain.
func (u *unpacker) buffer(codec byte, in []byte) error {
	if len(in) < 8 {
		return errors.New("it is too short to tell its length")
	}
	size := int64(binary.LittleEndian.Uint64(in))
	in = in[8:]
	u.plain = binary.LittleEndian.AppendUint64(u.plain, ^uint64(0)) // notPacked
	if size == notPacked {
		u.plain = append(u.plain, in...)
		return nil
	}
	if size < 0 || size > MaxMessage-int64(len(u.plain)) {
		return fmt.Errorf("its length of %d bytes is not one that a batch may have", size)
	}
	if size == 0 {
		return nil
	}
	r, err := u.reader(codec, in)
	if err != nil {
		return err
	}
	want := len(u.plain) + int(size)
	for len(u.plain) < want {
		u.plain = slices.Grow(u.plain, 1) // about doubles the capacity
		from := len(u.plain)
		n, err := io.ReadFull(r, u.plain[from:min(cap(u.plain), want)])
		u.plain = u.plain[:from+n]
		if err != nil {
			return fmt.Errorf("it gives %d of %d bytes: %w", int(size)-want+len(u.plain), size, Unexpected(err))
		}
	}
	var more [1]byte
	if n, err := r.Read(more[:]); n > 0 {
		return fmt.Errorf("it gives more than its %d bytes", size)
	} else if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// reader returns a reader that decompresses in.
func (u *unpacker) reader(codec byte, in []byte) (io.Reader, error) {
	switch codec {
	case lz4Frames:
		if u.lz4 == nil {
			u.lz4 = lz4.NewReader(nil)
		}
		u.lz4.Reset(bytes.NewReader(in))
		return u.lz4, nil
	case zstdBody:
		if u.zstd == nil {
			// With concurrency 1 the decoder starts no goroutines, so it need not be closed.
			made, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(MaxMessage))
			if err != nil {
				return nil, err
			}
			u.zstd = made
		}
		return u.zstd, u.zstd.Reset(bytes.NewReader(in))
	}
	return nil, fmt.Errorf("compression %d is neither LZ4 nor zstd", codec)
}
