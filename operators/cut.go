package operators

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/internal/batch"
)

// cut returns the range [lo, hi) of n rows that shard i of shards holds: from i·n/shards up to
// (i+1)·n/shards, rounded down. The products are computed without overflow.
func cut(n int64, shards, i int) (lo, hi int64) {
	at := func(i int) int64 {
		high, low := bits.Mul64(uint64(n), uint64(i))
		q, _ := bits.Div64(high, low, uint64(shards))
		return int64(q)
	}
	return at(i), at(i + 1)
}

// contentHash computes the fingerprint of rows in memory. The fingerprint is recorded in the
// graph, so that a change of the data between two builds is detected.
type contentHash struct {
	h    xxh3.Hasher
	room [8]byte // buffer for the encoding of a number
}

// hashRows is the number of rows that are hashed as one block.
const hashRows = 1024

// add hashes the rows of a batch, block by block. The hash depends on how rows are divided into
// batches, but not on whether buffers contain more than the rows. All rows of a batch without
// columns are hashed as one block, as their number can be huge although they take no memory.
func (c *contentHash) add(rows arrow.Record) error {
	content := batch.Content{Number: c.number, Bytes: func(piece []byte) { c.h.Write(piece) }}
	block := hashRows
	if rows.NumCols() == 0 {
		block = max(1, int(rows.NumRows()))
	}
	return content.Add(rows, block)
}

func (c *contentHash) number(v int64) {
	binary.LittleEndian.PutUint64(c.room[:], uint64(v))
	c.h.Write(c.room[:])
}

// String returns the fingerprint in hexadecimal.
func (c *contentHash) String() string {
	sum := c.h.Sum128().Bytes()
	return hex.EncodeToString(sum[:])
}

// rowOfInput adds to err the number i of the input row at which it occurred.
func rowOfInput(i int64, err error) error {
	return fmt.Errorf("row %d: %w", i, err)
}
