package comqueue

import (
	"fmt"
	"reflect"
	"slices"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// ShardColumn identifies a column of partitioned data by name and type. Make a ShardColumn
// where its key is made: when the job is built, a queue checks the columns that were made of
// its keys.
type ShardColumn[V any] struct {
	data   PartitionedData
	column columnOf[V]
}

// Get returns the values of a shard that the subtask owns. They are not copied, must not be
// modified, and are valid until the queue ends.
func (c ShardColumn[V]) Get(ctx *ComContext, shard int) V {
	return c.column.viewIn(c.data.Get(ctx, shard))
}

// Nullable returns the same column with nulls allowed. The column must have numbers, bools or
// text.
func (c ShardColumn[V]) Nullable() NullableShardColumn[V] {
	c.column.makeNullable(c.data.declared)
	return NullableShardColumn[V](c)
}

// NullableShardColumn is a ShardColumn that may have missing values.
type NullableShardColumn[V any] ShardColumn[V]

// Get returns the values of a shard that the subtask owns, and which of them are null. The
// value of a null is undefined.
func (c NullableShardColumn[V]) Get(ctx *ComContext, shard int) (V, Nulls) {
	f := c.data.Get(ctx, shard)
	return c.column.viewIn(f), f.nulls(c.column.name)
}

// BroadcastColumn identifies a column of broadcast data by name and type, as ShardColumn does
// for partitioned data.
type BroadcastColumn[V any] struct {
	data   BroadcastData
	column columnOf[V]
}

// Get returns the values of all rows, as ShardColumn.Get does for a shard.
func (c BroadcastColumn[V]) Get(ctx *ComContext) V { return c.column.viewIn(c.data.Get(ctx)) }

// Nullable returns the same column with nulls allowed, as ShardColumn.Nullable does.
func (c BroadcastColumn[V]) Nullable() NullableBroadcastColumn[V] {
	c.column.makeNullable(c.data.declared)
	return NullableBroadcastColumn[V](c)
}

// NullableBroadcastColumn is a BroadcastColumn that may have missing values.
type NullableBroadcastColumn[V any] BroadcastColumn[V]

// Get returns the values of all rows, as NullableShardColumn.Get does for a shard.
func (c NullableBroadcastColumn[V]) Get(ctx *ComContext) (V, Nulls) {
	f := c.data.Get(ctx)
	return c.column.viewIn(f), f.nulls(c.column.name)
}

// Ints returns the int64 column of the given name.
func (d PartitionedData) Ints(name string) ShardColumn[[]int64] {
	return ShardColumn[[]int64]{d, newColumn(d.declared, name, intsView, func(c *column) []int64 { return c.ints })}
}

// Floats returns the float64 column of the given name.
func (d PartitionedData) Floats(name string) ShardColumn[[]float64] {
	return ShardColumn[[]float64]{d, newColumn(d.declared, name, floatsView, func(c *column) []float64 { return c.floats })}
}

// Bools returns the bool column of the given name.
func (d PartitionedData) Bools(name string) ShardColumn[Bools] {
	return ShardColumn[Bools]{d, newColumn(d.declared, name, boolsView, func(c *column) Bools { return c.bools })}
}

// Texts returns the text column of the given name.
func (d PartitionedData) Texts(name string) ShardColumn[Texts] {
	return ShardColumn[Texts]{d, newColumn(d.declared, name, textsView, func(c *column) Texts { return c.texts })}
}

// Matrix returns the column of the given name, whose vectors must have one size. Either the
// column's type contains the size, as for columns made by Vectorize, or all rows of the shard
// have the same size.
func (d PartitionedData) Matrix(name string) ShardColumn[Matrix] {
	return ShardColumn[Matrix]{d, newColumn(d.declared, name, matrixView, func(c *column) Matrix { return c.matrix })}
}

// Vectors returns the column of the given name, whose vectors may have different sizes.
func (d PartitionedData) Vectors(name string) ShardColumn[Vectors] {
	return ShardColumn[Vectors]{d, newColumn(d.declared, name, vectorsView, func(c *column) Vectors { return c.vectors })}
}

// Sparse returns the column of the given name, which must have sparse vectors.
func (d PartitionedData) Sparse(name string) ShardColumn[Sparse] {
	return ShardColumn[Sparse]{d, newColumn(d.declared, name, sparseView, func(c *column) Sparse { return c.sparse })}
}

// Ints returns the int64 column of the given name.
func (d BroadcastData) Ints(name string) BroadcastColumn[[]int64] {
	return BroadcastColumn[[]int64]{d, newColumn(d.declared, name, intsView, func(c *column) []int64 { return c.ints })}
}

// Floats returns the float64 column of the given name.
func (d BroadcastData) Floats(name string) BroadcastColumn[[]float64] {
	return BroadcastColumn[[]float64]{d, newColumn(d.declared, name, floatsView, func(c *column) []float64 { return c.floats })}
}

// Bools returns the bool column of the given name.
func (d BroadcastData) Bools(name string) BroadcastColumn[Bools] {
	return BroadcastColumn[Bools]{d, newColumn(d.declared, name, boolsView, func(c *column) Bools { return c.bools })}
}

// Texts returns the text column of the given name.
func (d BroadcastData) Texts(name string) BroadcastColumn[Texts] {
	return BroadcastColumn[Texts]{d, newColumn(d.declared, name, textsView, func(c *column) Texts { return c.texts })}
}

// Matrix returns the column of the given name, whose vectors must have one size. Either the
// column's type contains the size, as for columns made by Vectorize, or all rows have the same
// size.
func (d BroadcastData) Matrix(name string) BroadcastColumn[Matrix] {
	return BroadcastColumn[Matrix]{d, newColumn(d.declared, name, matrixView, func(c *column) Matrix { return c.matrix })}
}

// Vectors returns the column of the given name, whose vectors may have different sizes.
func (d BroadcastData) Vectors(name string) BroadcastColumn[Vectors] {
	return BroadcastColumn[Vectors]{d, newColumn(d.declared, name, vectorsView, func(c *column) Vectors { return c.vectors })}
}

// Sparse returns the column of the given name, which must have sparse vectors.
func (d BroadcastData) Sparse(name string) BroadcastColumn[Sparse] {
	return BroadcastColumn[Sparse]{d, newColumn(d.declared, name, sparseView, func(c *column) Sparse { return c.sparse })}
}

// columnOf finds a column in frames.
type columnOf[V any] struct {
	wanted
	notNull *declaration // declared without nulls
	view    func(c *column) V
}

func newColumn[V any](d *declaredColumns, name string, kind viewKind, view func(c *column) V) columnOf[V] {
	w := wanted{name: name, kind: kind}
	return columnOf[V]{w, d.add(w), view}
}

// makeNullable replaces the declaration that the column has no nulls by a declaration that it
// may have nulls.
func (c *columnOf[V]) makeNullable(d *declaredColumns) {
	d.withdraw(c.notNull)
	c.nullable = true
	d.add(c.wanted)
}

func (c *columnOf[V]) viewIn(f *Frame) V { return c.view(f.find(c.name, c.kind, c.nullable)) }

// wanted is a column that a queue requires of its data.
type wanted struct {
	name     string
	kind     viewKind
	nullable bool
}

// declaredColumns has the columns of a key in the order in which they were made, and the struct
// types that its rows are read as.
type declaredColumns struct {
	mu      sync.Mutex
	columns []*declaration
	rows    []rowsWanted
}

// declaration is a column that one call has made.
type declaration struct {
	wanted
	withdrawn bool
}

// rowsWanted checks columns against the struct type that rows are read as.
type rowsWanted struct {
	as    reflect.Type
	check func(schema *arrow.Schema) error
}

func (d *declaredColumns) addRows(as reflect.Type, check func(schema *arrow.Schema) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.ContainsFunc(d.rows, func(w rowsWanted) bool { return w.as == as }) {
		d.rows = append(d.rows, rowsWanted{as, check})
	}
}

func (d *declaredColumns) add(w wanted) *declaration {
	d.mu.Lock()
	defer d.mu.Unlock()
	made := &declaration{wanted: w}
	d.columns = append(d.columns, made)
	return made
}

func (d *declaredColumns) withdraw(made *declaration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	made.withdrawn = true
}

// required returns the required columns without duplicates.
func (d *declaredColumns) required() (columns []wanted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.columns {
		if !c.withdrawn && !slices.Contains(columns, c.wanted) {
			columns = append(columns, c.wanted)
		}
	}
	return columns
}

// check returns what is wrong with the columns of a dataset.
func (d *declaredColumns) check(schema *arrow.Schema) error {
	for _, w := range d.required() {
		i, err := batch.FindColumn(schema, w.name)
		if err != nil {
			return err
		}
		has := schema.Field(i).Type
		if fitsMatrix := w.kind == matrixView && viewOfType(has) == vectorsView; viewOfType(has) != w.kind && !fitsMatrix {
			return fmt.Errorf("column %q is %s, where %v wants %s", w.name, batch.TypeName(has), w.kind, w.kind.wants())
		}
		if w.nullable && !w.kind.scalar() {
			return fmt.Errorf("column %q: %v has no room for nulls", w.name, w.kind)
		}
	}
	d.mu.Lock()
	rows := slices.Clone(d.rows)
	d.mu.Unlock()
	for _, w := range rows {
		if err := w.check(schema); err != nil {
			return fmt.Errorf("rows as %v: %w", w.as, err)
		}
	}
	return nil
}

// checkFrame returns an error if a row of the frame has a null in a column that was declared
// without nulls. shard identifies the shard of the rows; nil means several shards.
func (d *declaredColumns) checkFrame(f *Frame, shard *engine.RowsOf) error {
	for _, w := range d.required() {
		if w.nullable {
			continue
		}
		i, err := batch.FindColumn(f.record.Schema(), w.name)
		if err != nil {
			return err
		}
		if differs := f.columns[i].differs; w.kind == matrixView && differs != "" {
			return fmt.Errorf("column %q has vectors of several sizes, where Matrix wants them of one: %s", w.name, differs)
		}
		arr := f.record.Column(i)
		if arr.NullN() == 0 {
			continue
		}
		for row := range arr.Len() {
			if arr.IsNull(row) {
				return &engine.RowError{Row: int64(row), Of: shard, Err: fmt.Errorf("column %q is null, where %v has no room for nulls: %s", w.name, w.kind, w.kind.cure())}
			}
		}
	}
	return nil
}
