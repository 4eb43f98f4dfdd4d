package operators

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// groupFolder folds rows into the values of groups. A groupOperator assigns the groups'
// numbers.
type groupFolder interface {
	// take folds borrowed rows, in order; row i belongs to group groups[i]. It ignores rows of
	// group -1. index returns the index of row i within the shard.
	take(rows arrow.Record, groups []int32, index func(i int) int64) error
	// finish returns the results of the given groups as rows in the order of groups; the caller
	// owns them. keys, which is borrowed, has the key columns of one row of each group. finish
	// drops the groups, so that their numbers can be reused.
	finish(shard int, groups []int32, keys arrow.Record) (arrow.Record, error)
	// width returns the smallest number of bytes of a group. grown returns how many bytes the
	// groups have taken beyond width in the last call of take. grown may be called once after
	// each call of take.
	width() int64
	grown() int64
	// close releases everything.
	close()
}

// groupSpec is shared by the subtasks of an operator that groups rows.
type groupSpec struct {
	input   *arrow.Schema // schema of the input rows
	columns []int         // indices of the key columns; empty if all rows are one group
	output  *arrow.Schema // schema of the results
	folder  func(c *engine.Context) (groupFolder, error)
	// growing is set if the size of a group grows with its rows. Then, when the memory is used
	// up, no further rows are folded, not even rows of existing groups.
	growing bool
	// most, which is for tests, bounds the number of groups in memory; if it is 0, only the
	// memory bounds it.
	most int
	// whole is set if all rows are one group. Its result row is emitted in the last shard, even
	// if there are no rows.
	whole bool
}

// groupOperator groups the rows of each shard by key, folds each group in the order of its rows
// and emits the results in the order in which the groups first appeared.
//
// Groups are found with a hash table. When the table cannot grow within the slot's memory, rows
// of groups that are not in it are sorted by key on disk, and folded group by group at the end
// of the shard. All results are then sorted by the first row of their group, so the output does
// not depend on memory.
type groupOperator struct {
	engine.BaseOperator
	spec *groupSpec

	table   groupTable
	folder  groupFolder
	memory  groupMemory
	next    int64 // index of the next row within the shard
	full    bool  // the memory has been used up at an earlier row of this shard
	spilled *spilledGroups

	groups, inserted, left []int32 // in the current batch: the group of each row, or -1; the rows that begin groups; the rows of group -1
}

func (o *groupOperator) Open(c *engine.Context) error {
	o.table.context = c
	o.table.columns = o.spec.columns
	o.table.schema = keySchema(o.spec)
	o.memory = groupMemory{context: c, free: 64 << 10}
	var err error
	o.folder, err = o.spec.folder(c)
	return err
}

// keySchema returns the schema of the key columns.
func keySchema(spec *groupSpec) *arrow.Schema {
	fields := make([]arrow.Field, len(spec.columns))
	for i, c := range spec.columns {
		fields[i] = spec.input.Field(c)
	}
	return arrow.NewSchema(fields, nil)
}

func (o *groupOperator) Process(c *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	if err := o.table.reset(rows); err != nil {
		return err
	}
	o.groups, o.inserted, o.left = o.groups[:0], o.inserted[:0], o.left[:0]
	for i := range int(rows.NumRows()) {
		g := o.group(i)
		o.groups = append(o.groups, g)
		if g < 0 {
			o.left = append(o.left, int32(i))
		}
	}
	if err := o.table.keep(rows, o.inserted); err != nil {
		return err
	}
	first := o.next
	o.next += rows.NumRows()
	if err := o.folder.take(rows, o.groups, func(i int) int64 { return first + int64(i) }); err != nil {
		return err
	}
	if !o.memory.reserve(o.folder.grown()) {
		o.full = true // the current rows have been folded; later rows will not be
	}
	if len(o.left) == 0 {
		return nil
	}
	if o.spilled == nil {
		o.spilled = newSpilledGroups(c, o.spec)
	}
	return o.spilled.add(rows, o.left, first)
}

// group returns the group of row i of the batch, or -1 if the row must be sorted on disk.
func (o *groupOperator) group(i int) int32 {
	if o.full && o.spec.growing {
		return -1
	}
	g := o.table.find(i)
	if g >= 0 || o.full {
		return g
	}
	// The reservation covers the table, including its growth, and the key columns that it
	// keeps.
	if o.spec.most > 0 && o.table.len() == o.spec.most || !o.memory.reserve(64+4*int64(len(o.table.encoded))+o.folder.width()) {
		o.full = true
		return -1
	}
	o.inserted = append(o.inserted, int32(i))
	return o.table.insert()
}

func (o *groupOperator) EndShard(c *engine.Context, shard int, out engine.Output) error {
	if o.spec.whole && shard < c.Shards-1 {
		return nil
	}
	if err := o.emit(c, shard, out); err != nil {
		return err
	}
	if o.table.len() > manyGroups {
		var err error
		o.folder.close()
		if o.folder, err = o.spec.folder(c); err != nil {
			return err
		}
	}
	o.table.clear()
	o.memory.release()
	o.next, o.full = 0, false
	return nil
}

// manyGroups is the number of groups above which the table's memory is released at the end of a
// shard instead of being kept for the next shard.
const manyGroups = 1 << 12

// emit emits the groups of the shard.
func (o *groupOperator) emit(c *engine.Context, shard int, out engine.Output) error {
	if o.spilled != nil {
		err := o.spilled.fold(shard, &o.table, o.folder)
		if err == nil {
			err = o.spilled.emit(shard, out)
		}
		if closed := o.spilled.close(); err == nil {
			err = closed
		}
		o.spilled = nil
		return err
	}
	if o.spec.whole && o.table.len() == 0 {
		one := array.NewRecord(o.table.schema, nil, 1)
		defer one.Release()
		return o.emitGroups(shard, []int32{0}, one, out)
	}
	g := int32(0)
	for _, piece := range o.table.rows {
		for keys := range batch.Rechunk(piece, c.BatchRows) {
			o.groups = o.groups[:0]
			for range keys.NumRows() {
				o.groups = append(o.groups, g)
				g++
			}
			err := o.emitGroups(shard, o.groups, keys, out)
			keys.Release()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (o *groupOperator) emitGroups(shard int, groups []int32, keys arrow.Record, out engine.Output) error {
	rows, err := o.folder.finish(shard, groups, keys)
	if err != nil {
		return err
	}
	defer rows.Release()
	return out.Emit(shard, arrowrows.Batch(rows))
}

func (o *groupOperator) Close() error {
	o.table.clear()
	o.memory.release()
	if o.folder != nil {
		o.folder.close()
	}
	if o.spilled == nil {
		return nil
	}
	return o.spilled.close()
}

// groupMemory accounts for the groups of a shard.
type groupMemory struct {
	context        *engine.Context
	free           int64 // number of bytes that may be used without a reservation
	used, reserved int64
}

// reserve takes n bytes and returns true, or returns false if they do not fit.
func (m *groupMemory) reserve(n int64) bool {
	const step = 64 << 10
	need := m.used + n - m.free - m.reserved
	if need > 0 {
		// More is reserved than needed, so that only few rows cause a reservation.
		want := max(need, step)
		if !m.context.Memory.TryReserve(want) {
			if want = need; !m.context.Memory.TryReserve(want) {
				return false
			}
		}
		m.reserved += want
	}
	m.used += n
	return true
}

// release releases everything.
func (m *groupMemory) release() {
	if m.reserved > 0 {
		m.context.Memory.Release(m.reserved)
	}
	m.used, m.reserved = 0, 0
}
