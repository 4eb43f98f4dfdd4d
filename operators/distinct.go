package operators

import (
	"bytes"
	"errors"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Distinct keeps only the first of several rows that are equal in the given columns. The row
// keeps all its columns. If no columns are given, rows are compared in all columns. Values are
// compared as in GroupBy, where nulls are equal to each other, as in SELECT DISTINCT.
//
// The first of several rows is the row of the lowest source shard, and within a shard the
// earliest. A hash of the columns chooses the shard of a row; rows keep the order of their
// source shards. The distinct values of a shard are held in memory, within the run's budget.
// When no more values fit, rows with values that are not held are sorted on disk, which takes
// longer but gives the same result. Vectors cannot be compared: if a dataset has vectors, name
// other columns.
func Distinct(d *engine.Dataset, columns ...string) *engine.Dataset {
	return addDistinct("Distinct", d, columns, 0)
}

// addDistinct adds the operator distinct. most, which is for tests, bounds the number of keys
// in memory; if it is 0, only the memory bounds it.
func addDistinct(op string, d *engine.Dataset, columns []string, most int) *engine.Dataset {
	b := builderOf(op, d)
	if d == nil {
		b.Errorf("%s: the dataset is nil", op)
	}
	if !usable(d) {
		return b.Poisoned(op)
	}
	var attrs []engine.Attr
	if len(columns) > 0 {
		attrs = []engine.Attr{{Key: "by", Value: strings.Join(columns, ", ")}}
	} else {
		for _, f := range arrowrows.Arrow(d.Schema()).Fields() {
			columns = append(columns, f.Name)
		}
	}
	cols, ok := keyColumns(op, d, columns)
	if !ok {
		return b.Poisoned(op)
	}
	schema, port := d.Schema(), hashPort(d, cols)
	port.Use = keeps(d)
	return b.Add(engine.Spec{
		Op:       op,
		Attrs:    attrs,
		Schema:   schema,
		Inputs:   []engine.Port{port},
		Operator: func() engine.Operator { return &distinct{schema: arrowrows.Arrow(schema), columns: cols, most: most} },
	})
}

// distinct is the operator behind Distinct. It holds the set of the keys that have occurred in
// a shard. When the set cannot grow any more, rows whose keys are not in it are sorted on disk,
// and at the end of the shard the first row of each of these keys is found.
type distinct struct {
	engine.BaseOperator
	schema  *arrow.Schema
	columns []int
	most    int

	context *engine.Context
	keys    joinKeyReader
	seen    groupTable
	memory  groupMemory
	index   rowIndex
	spilled *spilledDistinct

	kept, open []int32 // rows of the current batch: those to emit, and those to sort on disk
}

func (o *distinct) Open(c *engine.Context) error {
	o.context, o.seen.context = c, c
	o.memory = groupMemory{context: c, free: 64 << 10}
	o.keys = joinKeyReader{columns: o.columns, grouped: true}
	return nil
}

func (o *distinct) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	first := o.index.batch(rows.NumRows())
	if err := o.keys.reset(rows); err != nil {
		return err
	}
	o.kept, o.open = o.kept[:0], o.open[:0]
	for i := range int(rows.NumRows()) {
		key := o.keys.key(i)
		switch {
		case o.seen.lookup(key) >= 0:
		case o.spilled == nil && o.seen.room(&o.memory, key, o.most):
			o.seen.insertKey(key)
			o.kept = append(o.kept, int32(i))
		default:
			if o.spilled == nil {
				o.spilled = newSpilledDistinct(c, o.schema)
			}
			o.open = append(o.open, int32(i))
		}
	}
	if len(o.open) > 0 {
		if err := o.spilled.rows.add(&o.keys, rows, o.open, first); err != nil {
			return err
		}
	}
	return emitIndices(c, shard, rows, o.kept, out)
}

func (o *distinct) EndShard(_ *engine.Context, shard int, out engine.Output) error {
	if o.spilled != nil {
		// All rows emitted so far precede the rows on disk.
		err := o.spilled.emit(shard, out)
		if closed := o.spilled.close(); err == nil {
			err = closed
		}
		o.spilled = nil
		if err != nil {
			return err
		}
	}
	o.seen.clear()
	o.memory.release()
	o.index.endShard()
	return nil
}

func (o *distinct) Close() error {
	o.seen.clear()
	o.memory.release()
	if o.spilled == nil {
		return nil
	}
	return o.spilled.close()
}

// spilledDistinct sorts the rows whose keys did not fit in the set.
type spilledDistinct struct {
	rows   *keySorter
	done   *placedRows
	picker rowPicker
}

func newSpilledDistinct(c *engine.Context, schema *arrow.Schema) *spilledDistinct {
	j := &spilledDistinct{rows: newKeySorter(c, schema), done: newPlacedRows(c, schema)}
	j.picker.to = j.done
	return j
}

// emit emits the first row of each key, in the order of the rows in the shard.
func (j *spilledDistinct) emit(shard int, out engine.Output) error {
	var last []byte // key of the previous row; nil before the first row, as no key is empty
	err := j.rows.sorter.each(func(rows arrow.Record) error {
		keys := rows.Column(j.rows.columns).(*array.Binary)
		indices := rows.Column(j.rows.columns + 1).(*array.Int64)
		for i := range int(rows.NumRows()) {
			if bytes.Equal(keys.Value(i), last) {
				continue
			}
			last = append(last[:0], keys.Value(i)...)
			if err := j.picker.pick(rows, i, indices.Value(i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil {
		err = j.picker.flush()
	}
	if err != nil {
		return err
	}
	return j.done.emit(shard, out)
}

// close releases everything.
func (j *spilledDistinct) close() error {
	j.picker.close()
	return errors.Join(j.rows.close(), j.done.close())
}
