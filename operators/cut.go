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

// contentHash computes the fingerprint of rows held in memory. It is recorded in the graph, so
// that data that change between two builds are found.
type contentHash struct {
	h    xxh3.Hasher
	room [8]byte // for a number
}

// hashRows is how many rows are hashed as a block.
const hashRows = 1024

// add hashes the rows of a batch, block by block. The hash depends on how rows are cut into
// batches, but not on larger buffers that contain the rows. Rows without columns are one block,
// because any number of them takes no memory.
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

// rowOfInput adds to an error the row of a source at which it happened.
func rowOfInput(i int64, err error) error {
	return fmt.Errorf("row %d: %w", i, err)
}
