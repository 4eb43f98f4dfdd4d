package disk

import (
	"bufio"
	"slices"

	"github.com/superstep-ml/superstep/internal/checksum"
)

// bufferSize is the size in bytes of write and read buffers. It is large compared with the small
// writes that make up a block.
const bufferSize = 64 << 10

// Block has the position of a block in a file, and the checksum of its bytes.
type Block struct {
	Offset int64
	Length int
	Sum    uint32
}

// Blocks appends blocks to a file. Only one goroutine may use it at a time. Other goroutines may
// read flushed blocks with ReadBlock meanwhile.
type Blocks struct {
	buffer *bufio.Writer
	at     int64 // bytes written to buffer
	block  Block // the block being written
}

// NewBlocks returns a writer of blocks to f, an empty file. The caller closes f.
func NewBlocks(f File) *Blocks { return &Blocks{buffer: bufio.NewWriterSize(f, bufferSize)} }

// Write appends data to the current block.
func (b *Blocks) Write(data []byte) (int, error) {
	n, err := b.buffer.Write(data)
	b.at += int64(n)
	b.block.Length += n
	b.block.Sum = checksum.CRC32C(b.block.Sum, data[:n])
	return n, err
}

// End ends the current block and returns it. The next Write begins another block.
func (b *Blocks) End() Block {
	done := b.block
	b.block = Block{Offset: b.at}
	return done
}

// Flush writes buffered bytes to the file, after which all blocks can be read.
func (b *Blocks) Flush() error { return b.buffer.Flush() }

// Size returns the number of bytes written, including bytes that are still buffered.
func (b *Blocks) Size() int64 { return b.at }

// ReadBlock returns the bytes of b, a block of f that was flushed. It reads them into scratch, or
// into a larger slice if scratch is too small. If the file has other bytes than were written, it
// fails with a *DamagedError.
func ReadBlock(f File, b Block, scratch []byte) ([]byte, error) {
	data := slices.Grow(scratch[:0], b.Length)[:b.Length]
	if err := readFull(f, data, b.Offset); err != nil {
		return data, err
	}
	if got := checksum.CRC32C(0, data); got != b.Sum {
		return data, &DamagedError{File: f.Name(), Offset: b.Offset, Length: int64(b.Length), Err: errChecksum(got, b.Sum)}
	}
	return data, nil
}
