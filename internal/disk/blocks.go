package disk

import (
	"bufio"
	"slices"
)

// bufferSize is large compared with the small writes that make up a block.
const bufferSize = 64 << 10

// Block is the place of a block in a file, and the checksum of its bytes.
type Block struct {
	Offset int64
	Length int
	Sum    uint32
}

// Blocks appends blocks to a file. One goroutine at a time uses it; others may read flushed
// blocks with ReadBlock.
type Blocks struct {
	buffer *bufio.Writer
	at     int64 // bytes written to buffer
	block  Block // being written
}

// NewBlocks writes to an empty file, which the caller closes.
func NewBlocks(f File) *Blocks { return &Blocks{buffer: bufio.NewWriterSize(f, bufferSize)} }

// Write appends to the current block.
func (b *Blocks) Write(data []byte) (int, error) {
	n, err := b.buffer.Write(data)
	b.at += int64(n)
	b.block.Length += n
	b.block.Sum = Checksum(b.block.Sum, data[:n])
	return n, err
}

// End ends the current block, and begins the next.
func (b *Blocks) End() Block {
	done := b.block
	b.block = Block{Offset: b.at}
	return done
}

// Flush makes what was written readable.
func (b *Blocks) Flush() error { return b.buffer.Flush() }

// Size is the number of bytes written.
func (b *Blocks) Size() int64 { return b.at }

// ReadBlock returns the bytes of a block that was written and flushed, in scratch, grown as
// needed. If the file has other bytes, it fails with a *DamagedError.
func ReadBlock(f File, b Block, scratch []byte) ([]byte, error) {
	data := slices.Grow(scratch[:0], b.Length)[:b.Length]
	if err := readFull(f, data, b.Offset); err != nil {
		return data, err
	}
	if got := Checksum(0, data); got != b.Sum {
		return data, &DamagedError{File: f.Name(), Offset: b.Offset, Length: int64(b.Length), Err: errChecksum(got, b.Sum)}
	}
	return data, nil
}
