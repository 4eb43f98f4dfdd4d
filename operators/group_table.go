package operators

import (
	"bytes"
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// groupTable numbers distinct keys in the order in which they are inserted, and keeps the key
// columns of the rows whose keys were inserted. It is a hash table with open addressing, over
// the documented encoding of keys.
type groupTable struct {
	context *engine.Context
	columns []int         // indices of the key columns in the rows
	schema  *arrow.Schema // schema of the key columns

	keys   batch.Keys
	places []int32  // places of the hash table: group+1, or 0 if the place is free; the length is a power of two
	hashes []uint64 // group -> hash of its key
	ends   []int    // group -> offset in text at which its encoded key ends
	text   []byte
	rows   []arrow.Record // key columns of the groups, in the order of their numbers, in several batches; owned

	encoded []byte // the encoded key that the last call of find looked up
	hash    uint64
}

// len returns the number of groups.
func (t *groupTable) len() int { return len(t.hashes) }

// reset sets the batch whose rows find and insert refer to. It borrows rows.
func (t *groupTable) reset(rows arrow.Record) error { return t.keys.Reset(rows, t.columns) }

// find returns the group of a row of the batch, or -1 if its key is not in the table.
func (t *groupTable) find(row int) int32 {
	t.encoded = t.keys.Append(t.encoded[:0], row)
	return t.lookup(t.encoded)
}

// lookup returns the group of an encoded key, or -1 if it is not in the table. insertKey may
// then insert it.
func (t *groupTable) lookup(encoded []byte) int32 {
	t.hash = xxh3.Hash(encoded)
	if len(t.places) == 0 {
		return -1
	}
	for i := t.home(t.hash); ; i = (i + 1) & (len(t.places) - 1) {
		g := t.places[i] - 1
		if g < 0 || t.hashes[g] == t.hash && bytes.Equal(t.key(g), encoded) {
			return g
		}
	}
}

// home returns the index in places at which the search for a hash begins. It uses the upper
// bits of the hash, as the hashes of all keys of one shard have the same lower bits.
func (t *groupTable) home(hash uint64) int {
	return int(hash >> (64 - bits.Len(uint(len(t.places)-1))))
}

// key returns the encoding of a group's key.
func (t *groupTable) key(g int32) []byte {
	start := 0
	if g > 0 {
		start = t.ends[g-1]
	}
	return t.text[start:t.ends[g]]
}

// room reserves memory for the insertion of a key, and reports whether there was enough. most
// bounds the number of groups; if it is 0, only the memory bounds it.
func (t *groupTable) room(memory *groupMemory, key []byte, most int) bool {
	return (most == 0 || t.len() < most) && memory.reserve(72+4*int64(len(key)))
}

// insert adds the key that the last call of find did not find, and returns its group. The
// caller must then call keep for the row of this key.
func (t *groupTable) insert() int32 { return t.insertKey(t.encoded) }

// insertKey adds an encoded key and returns its group. The previous call must have been lookup
// of this key, and must have returned -1.
func (t *groupTable) insertKey(encoded []byte) int32 {
	if 2*(len(t.hashes)+1) > len(t.places) {
		t.places = make([]int32, max(2*len(t.places), 64))
		for g, h := range t.hashes {
			t.put(int32(g), h)
		}
	}
	g := int32(len(t.hashes))
	t.hashes = append(t.hashes, t.hash)
	t.text = append(t.text, encoded...)
	t.ends = append(t.ends, len(t.text))
	t.put(g, t.hash)
	return g
}

func (t *groupTable) put(g int32, hash uint64) {
	i := t.home(hash)
	for t.places[i] != 0 {
		i = (i + 1) & (len(t.places) - 1)
	}
	t.places[i] = g + 1
}

// The batches in rows are concatenated when there are smallPieces batches of at most
// smallPieceMax rows each.
const (
	smallPieces   = 32
	smallPieceMax = 512 // number of rows
)

// keep keeps the key columns of the rows whose keys were inserted, in the order of insertion.
func (t *groupTable) keep(rows arrow.Record, inserted []int32) error {
	if len(inserted) == 0 {
		return nil
	}
	piece, err := t.take(rows, inserted)
	if err != nil {
		return err
	}
	t.rows = append(t.rows, piece)
	small := len(t.rows)
	for small > 0 && t.rows[small-1].NumRows() < smallPieceMax {
		small--
	}
	if len(t.rows)-small < smallPieces {
		return nil
	}
	joined, err := batch.Concat(t.context.Allocator, t.rows[small:])
	if err != nil {
		return err
	}
	for i := small; i < len(t.rows); i++ {
		t.rows[i].Release()
		t.rows[i] = nil
	}
	t.rows = append(t.rows[:small], joined)
	return nil
}

// take returns the key columns of the rows of a batch at the given indices. The caller owns
// them.
func (t *groupTable) take(rows arrow.Record, indices []int32) (arrow.Record, error) {
	cols := make([]arrow.Array, len(t.columns))
	for i, c := range t.columns {
		cols[i] = rows.Column(c)
	}
	keys := array.NewRecord(t.schema, cols, rows.NumRows())
	defer keys.Release()
	return batch.Take(t.context.Allocator, keys, indices)
}

// clear removes all groups. It keeps the memory for later groups, unless there were more than
// manyGroups.
func (t *groupTable) clear() {
	for i, r := range t.rows {
		r.Release()
		t.rows[i] = nil
	}
	t.rows = t.rows[:0]
	if len(t.hashes) > manyGroups || cap(t.text) > 64*manyGroups {
		t.places, t.hashes, t.ends, t.text = nil, nil, nil, nil
		return
	}
	clear(t.places)
	t.hashes, t.ends, t.text = t.hashes[:0], t.ends[:0], t.text[:0]
}
