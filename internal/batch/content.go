package batch

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
)

// A Content produces the bytes that rows would have in a batch made by Concat, without making
// that batch. Equal rows give equal bytes, even if they are slices of different batches.
// Content hashes are computed over these bytes.
//
// Add calls Number for each column, and then for each of its children, with the number of
// nulls. It also calls Number for each buffer with the length of the buffer in bytes, or with
// -1 for the validity bitmap of a column without nulls. After the length of a buffer, Add calls
// Bytes with the contents of the buffer, in any number of pieces, which are borrowed.
type Content struct {
	Number func(v int64)
	Bytes  func(piece []byte)

	room [1024]byte // for bits and offsets that are not in the batch in this form
}

// Add produces the rows of a batch in blocks of at most the given number, which must be
// positive. For each block it calls Number with the number of rows, and then produces the
// columns. A batch of no rows is one block. The allocations of Add do not depend on the number
// of blocks.
func (c *Content) Add(rec arrow.Record, block int) error {
	columns := make([]source, rec.NumCols())
	for i := range columns {
		var err error
		if columns[i], err = newSource(rec.Column(i).Data()); err != nil {
			return fmt.Errorf("column %s: %w", quote(rec.ColumnName(i)), err)
		}
	}
	rows := int(rec.NumRows())
	for start := 0; start == 0 || start < rows; start += block {
		n := min(block, rows-start)
		c.Number(int64(n))
		for i := range columns {
			c.array(&columns[i], start, n)
		}
	}
	return nil
}

// array produces rows start to start+n-1 of s. Buffers and children have the order of the Arrow
// format.
func (c *Content) array(s *source, start, n int) {
	nulls := 0
	if s.valid != nil {
		nulls = n - bitutil.CountSetBits(s.valid, s.bitOff+start, n)
	}
	c.Number(int64(nulls))
	if nulls > 0 {
		c.bits(s.valid, s.bitOff+start, n)
	} else {
		c.Number(-1)
	}
	switch s.layout {
	case layoutFixed:
		c.buffer(s.data[start*s.width : (start+n)*s.width])
	case layoutBits:
		c.bits(s.data, s.bitOff+start, n)
	case layoutText:
		c.offsets(s.offs[start : start+n+1])
		c.buffer(s.data[s.offs[start]:s.offs[start+n]])
	case layoutList:
		c.offsets(s.offs[start : start+n+1])
		c.array(&s.children[0], int(s.offs[start]), int(s.offs[start+n]-s.offs[start]))
	case layoutBlock:
		c.array(&s.children[0], start*s.width, n*s.width)
	case layoutStruct:
		for i := range s.children {
			c.array(&s.children[i], start, n)
		}
	}
}

func (c *Content) buffer(b []byte) {
	c.Number(int64(len(b)))
	c.Bytes(b)
}

// bits produces n bits of the bitmap from, beginning with bit start. They are shifted so that
// the first of them is bit 0 of a byte. The remaining bits of the last byte are 0.
func (c *Content) bits(from []byte, start, n int) {
	c.Number(bitutil.BytesForBits(int64(n)))
	for lo := 0; lo < n; lo += 8 * len(c.room) {
		some := min(8*len(c.room), n-lo)
		piece := c.room[:bitutil.BytesForBits(int64(some))]
		moveBits(piece, from[(start+lo)/8:], (start+lo)%8, some)
		c.Bytes(piece)
	}
}

// moveBits copies n bits of the bitmap from, beginning with bit by, to the beginning of the
// bitmap to. It sets the remaining bits of the last byte to 0. It replaces bitutil.CopyBitmap,
// which allocates if by is not 0.
func moveBits(to, from []byte, by, n int) {
	for i := range to {
		to[i] = from[i] >> by
		if by > 0 && i+1 < len(from) {
			to[i] |= from[i+1] << (8 - by)
		}
	}
	if rest := n % 8; rest > 0 {
		to[len(to)-1] &= 1<<rest - 1
	}
}

// offsets subtracts the first offset from every offset, and produces the results.
func (c *Content) offsets(all []int32) {
	c.Number(int64(len(all) * arrow.Int32SizeBytes))
	first, room := all[0], castBytes[int32](c.room[:])
	for len(all) > 0 {
		n := min(len(room), len(all))
		for i, v := range all[:n] {
			room[i] = v - first
		}
		c.Bytes(c.room[:n*arrow.Int32SizeBytes])
		all = all[n:]
	}
}
