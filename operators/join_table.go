package operators

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// joinTable holds the right rows of a shard in memory. It is a hash table that has, for each
// key, a list of the rows with this key, in their order.
type joinTable struct {
	context *engine.Context
	most    int // bounds the number of rows; see joinSpec.most
	keys    joinKeyReader
	groups  groupTable
	memory  groupMemory

	held  []arrow.Record // batches of rows in their order, retained
	bytes int64          // number of bytes of held
	heads []int32        // group (key) -> its first row
	tails []int32        // group -> its last row
	next  []int32        // row -> the next row of its group; -1 for the last row

	rows    arrow.Record // all rows in one batch, owned; set by seal
	matched []bool       // row -> whether it has had a partner
}

// These are the limits of the batch of all rows, as Arrow's offsets of text have 31 bits.
const (
	joinTableRows  = 1 << 30
	joinTableBytes = 1 << 30
)

// open initializes the table, which is empty.
func (t *joinTable) open(c *engine.Context, spec *joinSpec) {
	t.context, t.keys.columns, t.most = c, spec.columns.right, spec.most
	t.groups.context = c
	t.memory = groupMemory{context: c, free: 64 << 10}
}

// add adds borrowed rows and reports whether they fit. If they do not fit, the table does not
// hold them, and only held and clear may be used after that.
func (t *joinTable) add(rows arrow.Record) (fits bool, err error) {
	size, first := batch.Size(rows), len(t.next)
	most := int64(joinTableRows)
	if t.most > 0 {
		most = int64(t.most)
	}
	if int64(first)+rows.NumRows() > most || t.bytes+size > joinTableBytes {
		return false, nil
	}
	// The reservation covers the rows, their copy in one batch, and their elements in next and
	// matched.
	if !t.memory.reserve(2*size + 9*rows.NumRows()) {
		return false, nil
	}
	if err := t.keys.reset(rows); err != nil {
		return false, err
	}
	for i := range int(rows.NumRows()) {
		t.next = append(t.next, -1)
		if !t.keys.null(i) && !t.link(int32(first+i), t.keys.key(i)) {
			return false, nil
		}
	}
	rows.Retain()
	t.held = append(t.held, rows)
	t.bytes += size
	return true, nil
}

// link appends a row to the list of its key, and reports whether the memory sufficed.
func (t *joinTable) link(row int32, key []byte) bool {
	g := t.groups.lookup(key)
	if g >= 0 {
		t.next[t.tails[g]] = row
		t.tails[g] = row
		return true
	}
	if !t.groups.room(&t.memory, key, 0) {
		return false
	}
	t.groups.insertKey(key)
	t.heads, t.tails = append(t.heads, row), append(t.tails, row)
	return true
}

// seal concatenates the rows to one batch, so that they can be read. After seal, no rows can be
// added.
func (t *joinTable) seal() error {
	if t.rows != nil || len(t.held) == 0 {
		return nil
	}
	if len(t.held) == 1 {
		t.rows = t.held[0]
	} else {
		all, err := batch.Concat(t.context.Allocator, t.held)
		if err != nil {
			return err
		}
		for _, r := range t.held {
			r.Release()
		}
		t.rows = all
	}
	clear(t.held)
	t.held = t.held[:0]
	t.matched = append(t.matched[:0], make([]bool, len(t.next))...)
	return nil
}

// first returns the first row with the given key, or -1 if there is none.
func (t *joinTable) first(key []byte) int32 {
	if g := t.groups.lookup(key); g >= 0 {
		return t.heads[g]
	}
	return -1
}

// clear makes the table empty, so that it can be used for the next shard.
func (t *joinTable) clear() {
	for i, r := range t.held {
		r.Release()
		t.held[i] = nil
	}
	t.held, t.bytes = t.held[:0], 0
	if t.rows != nil {
		t.rows.Release()
		t.rows = nil
	}
	if len(t.next) > manyGroups {
		t.heads, t.tails, t.next, t.matched = nil, nil, nil, nil
	}
	t.heads, t.tails, t.next, t.matched = t.heads[:0], t.tails[:0], t.next[:0], t.matched[:0]
	t.groups.clear()
	t.memory.release()
}
