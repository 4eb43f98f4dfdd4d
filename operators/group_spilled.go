package operators

import (
	"bytes"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// spilledGroups holds those rows of a shard that could not be folded on arrival because the
// memory was used up.
type spilledGroups struct {
	context *engine.Context
	spec    *groupSpec
	waiting *rowSorter // rows with their indices within the shard, sorted by key
	done    *rowSorter // all results, sorted by the index of the group's first row

	folder groupFolder
	keys   batch.Keys
	// The following fields have the groups that are not in the table and have not been
	// finished, in the order of the sorted rows: their numbers, their key columns and the
	// indices of their first rows. If open is set, the last group may get more rows.
	groups  []int32
	rows    []arrow.Record // key columns of the groups; owned
	firsts  []int64
	open    bool
	current []byte // the key of the previous row
	begun   bool   // the first row has been read, so current is valid
	inTable int32  // the group in the table whose key is current, or -1

	free []int32 // numbers of finished groups, which can be reused
	used int32   // the numbers 0 to used-1 have been assigned to groups

	// The key columns of the table's groups, and whether each group is finished.
	tableKeys arrow.Record // owned
	finished  []bool

	// For each of the current rows, spilledNumbers has the row's group if it is in groups, or
	// else -1; early has the row's group if it is in the table, or else -1. starts has the rows
	// that begin groups. ended has the groups of the table whose last row has been read.
	spilledNumbers, early, starts, ended []int32
}

// newSpilledGroups returns an empty spilledGroups.
func newSpilledGroups(c *engine.Context, spec *groupSpec) *spilledGroups {
	byKey := make([]batch.SortKey, len(spec.columns))
	for i, col := range spec.columns {
		byKey[i].Column = col
	}
	order := func(s *arrow.Schema) *arrow.Schema {
		fields := s.Fields()
		return arrow.NewSchema(append(fields, arrow.Field{Name: freeName(fields, "index"), Type: arrow.PrimitiveTypes.Int64}), nil)
	}
	return &spilledGroups{
		context: c, spec: spec,
		waiting: newRowSorter(c, order(spec.input), byKey),
		done:    newRowSorter(c, order(spec.output), []batch.SortKey{{Column: spec.output.NumFields()}}),
	}
}

// add adds the rows at the given indices of a batch. first is the index of the batch's first
// row within the shard.
func (l *spilledGroups) add(rows arrow.Record, indices []int32, first int64) error {
	at := make([]int64, len(indices))
	for i, row := range indices {
		at[i] = first + int64(row)
	}
	return passRows(l.context, rows, indices, func(part arrow.Record) error {
		return addNumbered(l.waiting, part, at)
	})
}

// addNumbered adds rows to a sorter, with numbers as an additional last column.
func addNumbered(s *rowSorter, rows arrow.Record, numbers []int64) error {
	col := int64Column(s.context, numbers)
	defer col.Release()
	numbered := array.NewRecord(s.schema, append(rows.Columns()[:rows.NumCols():rows.NumCols()], col), rows.NumRows())
	defer numbered.Release()
	return s.add(numbered)
}

// int64Column returns a column of values, owned by the caller.
func int64Column(c *engine.Context, values []int64) arrow.Array {
	bld := array.NewInt64Builder(c.Allocator)
	defer bld.Release()
	bld.AppendValues(values, nil)
	return bld.NewArray()
}

// fold folds the waiting rows. It folds rows of groups in the table into those groups, and the
// other rows group by group. It also finishes the groups of the table.
func (l *spilledGroups) fold(shard int, table *groupTable, into groupFolder) error {
	var err error
	if l.folder, err = l.spec.folder(l.context); err != nil {
		return err
	}
	if err := l.openTable(table); err != nil {
		return err
	}
	err = l.waiting.each(func(numbered arrow.Record) error {
		rows := firstColumns(l.spec.input, numbered)
		defer rows.Release()
		indices := numbered.Column(int(rows.NumCols())).(*array.Int64).Int64Values()
		if err := l.assign(rows, indices, table); err != nil {
			return err
		}
		index := func(i int) int64 { return indices[i] }
		if err := into.take(rows, l.early, index); err != nil {
			return err
		}
		if err := l.folder.take(rows, l.spilledNumbers, index); err != nil {
			return err
		}
		if err := l.finishTable(shard, into); err != nil {
			return err
		}
		return l.finish(shard)
	})
	if err != nil {
		return err
	}
	l.open = false
	if err := l.finish(shard); err != nil {
		return err
	}
	return l.finishRest(shard, into)
}

// openTable prepares to finish the groups of the table.
func (l *spilledGroups) openTable(table *groupTable) (err error) {
	l.finished = make([]bool, table.len())
	if len(table.rows) > 0 {
		l.tableKeys, err = batch.Concat(l.context.Allocator, table.rows)
	}
	return err
}

// assign determines the groups of rows and sets spilledNumbers, early, starts and ended.
// indices has the rows' indices within the shard.
func (l *spilledGroups) assign(rows arrow.Record, indices []int64, table *groupTable) error {
	if err := l.keys.Reset(rows, l.spec.columns); err != nil {
		return err
	}
	l.spilledNumbers, l.early, l.starts, l.ended = l.spilledNumbers[:0], l.early[:0], l.starts[:0], l.ended[:0]
	for i := range int(rows.NumRows()) {
		if l.next(i, table) {
			l.starts = append(l.starts, int32(i))
			l.firsts = append(l.firsts, indices[i])
		}
		g := int32(-1)
		if l.open {
			g = l.groups[len(l.groups)-1]
		}
		l.spilledNumbers = append(l.spilledNumbers, g)
		l.early = append(l.early, l.inTable)
	}
	if len(l.starts) == 0 {
		return nil
	}
	keys, err := table.take(rows, l.starts)
	if err != nil {
		return err
	}
	l.rows = append(l.rows, keys)
	return nil
}

// finishTable adds to done the results of the groups of the table in ended. It removes these
// groups from the folder, as the values of some folds grow with every row.
func (l *spilledGroups) finishTable(shard int, from groupFolder) error {
	if len(l.ended) == 0 {
		return nil
	}
	// The groups of the table were inserted in the order of their first rows, before any row
	// was added to waiting. So the groups' numbers are less than the index of any waiting row,
	// and sorting by them gives the order of first rows.
	numbers := make([]int64, len(l.ended))
	for i, g := range l.ended {
		l.finished[g] = true
		numbers[i] = int64(g)
	}
	return passRows(l.context, l.tableKeys, l.ended, func(keys arrow.Record) error {
		outcome, err := from.finish(shard, l.ended, keys)
		if err != nil {
			return err
		}
		defer outcome.Release()
		return addNumbered(l.done, outcome, numbers)
	})
}

// finishRest calls finishTable for all groups of the table that are not finished.
func (l *spilledGroups) finishRest(shard int, from groupFolder) error {
	l.ended = l.ended[:0]
	for g, done := range l.finished {
		if !done {
			l.ended = append(l.ended, int32(g))
		}
		if len(l.ended) == l.context.BatchRows || g == len(l.finished)-1 {
			if err := l.finishTable(shard, from); err != nil {
				return err
			}
			l.ended = l.ended[:0]
		}
	}
	return nil
}

// next proceeds to row i and reports whether it begins a group that is not in the table.
func (l *spilledGroups) next(i int, table *groupTable) bool {
	table.encoded = l.keys.Append(table.encoded[:0], i)
	if l.begun && bytes.Equal(table.encoded, l.current) {
		return false
	}
	if l.begun && l.inTable >= 0 {
		l.ended = append(l.ended, l.inTable)
	}
	l.begun = true
	l.current = append(l.current[:0], table.encoded...)
	l.inTable = table.lookup(l.current)
	l.open = l.inTable < 0
	if !l.open {
		return false
	}
	if n := len(l.free); n > 0 {
		l.groups = append(l.groups, l.free[n-1])
		l.free = l.free[:n-1]
	} else {
		l.groups = append(l.groups, l.used)
		l.used++
	}
	return true
}

// finish adds to done the results of all groups, except the last one if it is open.
func (l *spilledGroups) finish(shard int) error {
	n := len(l.groups)
	if l.open {
		n--
	}
	if n == 0 {
		return nil
	}
	keys, err := batch.Concat(l.context.Allocator, l.rows)
	if err != nil {
		return err
	}
	defer keys.Release()
	l.dropKeys()
	done, err := batch.Slice(keys, 0, n)
	if err != nil {
		return err
	}
	defer done.Release()
	outcome, err := l.folder.finish(shard, l.groups[:n], done)
	if err != nil {
		return err
	}
	defer outcome.Release()
	if err := addNumbered(l.done, outcome, l.firsts[:n]); err != nil {
		return err
	}
	l.free = append(l.free, l.groups[:n]...)
	l.groups = append(l.groups[:0], l.groups[n:]...)
	l.firsts = append(l.firsts[:0], l.firsts[n:]...)
	if !l.open {
		return nil
	}
	rest, err := batch.Take(l.context.Allocator, keys, []int32{int32(n)})
	if err != nil {
		return err
	}
	l.rows = append(l.rows, rest)
	return nil
}

func (l *spilledGroups) dropKeys() {
	for i, r := range l.rows {
		r.Release()
		l.rows[i] = nil
	}
	l.rows = l.rows[:0]
}

// emit emits the results in the order of their groups' first rows.
func (l *spilledGroups) emit(shard int, out engine.Output) error {
	return l.done.each(func(numbered arrow.Record) error {
		rows := firstColumns(l.spec.output, numbered)
		defer rows.Release()
		return out.Emit(shard, arrowrows.Batch(rows))
	})
}

// close releases everything.
func (l *spilledGroups) close() error {
	l.dropKeys()
	if l.tableKeys != nil {
		l.tableKeys.Release()
		l.tableKeys = nil
	}
	if l.folder != nil {
		l.folder.close()
	}
	err := l.waiting.close()
	if closed := l.done.close(); err == nil {
		err = closed
	}
	return err
}
