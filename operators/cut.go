package operators

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/zeebo/xxh3"
)

// cut returns the rows [lo, hi) that shard i of shards holds of n rows: from
// i·n/shards up to (i+1)·n/shards, rounded down. The products do not overflow.
func cut(n int64, shards, i int) (lo, hi int64) {
	at := func(i int) int64 {
		high, low := bits.Mul64(uint64(n), uint64(i))
		q, _ := bits.Div64(high, low, uint64(shards))
		return int64(q)
	}
	return at(i), at(i + 1)
}

// contentHash takes the fingerprint of rows held in memory, which goes into the
// graph so that a job whose data change between two builds is noticed.
type contentHash struct{ h xxh3.Hasher }

// add hashes a batch whose buffers hold its rows and nothing else, as those of
// appenders and of batch.Concat do. Batches must be cut alike to hash alike.
func (c *contentHash) add(rows arrow.Record) {
	c.number(rows.NumRows())
	for _, col := range rows.Columns() {
		c.data(col.Data())
	}
}

func (c *contentHash) data(d arrow.ArrayData) {
	c.number(int64(d.NullN()))
	for _, b := range d.Buffers() {
		if b == nil {
			c.number(-1)
			continue
		}
		c.number(int64(b.Len()))
		c.h.Write(b.Bytes())
	}
	for _, child := range d.Children() {
		c.data(child)
	}
}

func (c *contentHash) number(v int64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(v))
	c.h.Write(b[:])
}

// String returns the fingerprint in hexadecimal.
func (c *contentHash) String() string {
	sum := c.h.Sum128().Bytes()
	return hex.EncodeToString(sum[:])
}

// rowOfInput says at which row of a source something failed.
func rowOfInput(i int64, err error) error {
	return fmt.Errorf("row %d: %w", i, err)
}
