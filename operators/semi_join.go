package operators

import (
	"errors"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// SemiJoin keeps the rows of the left dataset that have a partner in the right dataset. Each
// row is kept once, with all its columns unchanged. On says when rows are partners.
//
// A hash of the keys chooses the shard of a row; rows keep the order of their source shards, as
// in Join. The distinct keys of the right rows of a shard are held in memory, within the run's
// budget. Keys that do not fit, and left rows that may have these keys, are sorted on disk,
// which takes longer but gives the same result.
func SemiJoin(left, right *engine.Dataset, on JoinKeys) *engine.Dataset {
	return addSemiJoin("SemiJoin", left, right, on, false, 0)
}

// AntiJoin keeps the rows of the left dataset that have no partner in the right dataset,
// including rows with a null in a key. In all other respects it does the same as SemiJoin.
func AntiJoin(left, right *engine.Dataset, on JoinKeys) *engine.Dataset {
	return addSemiJoin("AntiJoin", left, right, on, true, 0)
}

// addSemiJoin adds a semiJoiner. most has the meaning of joinSpec.most.
func addSemiJoin(op string, left, right *engine.Dataset, on JoinKeys, anti bool, most int) *engine.Dataset {
	b, ok := joinBuilder(op, left, right)
	if !ok {
		return b.Poisoned(op)
	}
	if !on.check(op, left, right) {
		return b.Poisoned(op)
	}
	left, right, cols := on.sent(op, left, right, nil, arrow.NewSchema(nil, nil))
	spec := &joinSpec{most: most, columns: cols, left: arrowrows.Arrow(left.Schema()), right: arrowrows.Arrow(right.Schema())}
	ports := []engine.Port{joinRight: hashPort(right, cols.right), joinLeft: hashPort(left, cols.left)}
	ports[joinLeft].Use = keeps(left)
	return b.Add(engine.Spec{
		Op:       op,
		Attrs:    []engine.Attr{{Key: "on", Value: on.String()}},
		Schema:   left.Schema(),
		Inputs:   ports,
		Operator: func() engine.Operator { return &semiJoiner{spec: spec, anti: anti} },
	})
}

// semiJoiner is the operator behind SemiJoin and AntiJoin. It has a set of the keys of the
// right rows of a shard. When the set cannot grow any more, keys that are not in it are sorted
// on disk, and so are left rows whose keys are not in it.
type semiJoiner struct {
	engine.BaseOperator
	spec *joinSpec
	anti bool

	context *engine.Context
	keys    [2]joinKeyReader // indexed by port
	found   groupTable
	memory  groupMemory
	indices [2]rowIndex
	spilled *spilledSemiJoin

	kept, open []int32 // rows of the current batch: those to emit, and those to sort on disk
}

func (o *semiJoiner) Open(c *engine.Context) error {
	o.context, o.found.context = c, c
	o.memory = groupMemory{context: c, free: 64 << 10}
	o.keys[joinLeft].columns, o.keys[joinRight].columns = o.spec.columns.left, o.spec.columns.right
	return nil
}

func (o *semiJoiner) Process(c *engine.Context, port, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	first := o.indices[port].batch(rows.NumRows())
	if err := o.keys[port].reset(rows); err != nil {
		return err
	}
	if port == joinRight {
		return o.addKeys(rows, first)
	}
	keys := &o.keys[joinLeft]
	o.kept, o.open = o.kept[:0], o.open[:0]
	for i := range int(rows.NumRows()) {
		switch {
		case !keys.null(i) && o.found.lookup(keys.key(i)) >= 0:
			if !o.anti {
				o.kept = append(o.kept, int32(i))
			}
		case o.spilled != nil && !keys.null(i):
			o.open = append(o.open, int32(i))
		case o.anti:
			o.kept = append(o.kept, int32(i))
		}
	}
	if o.spilled == nil {
		return emitIndices(c, shard, rows, o.kept, out)
	}
	if err := o.spilled.keep(rows, o.kept, first); err != nil {
		return err
	}
	return o.spilled.left.add(keys, rows, o.open, first)
}

// addKeys adds the keys of right rows.
func (o *semiJoiner) addKeys(rows arrow.Record, first int64) error {
	keys := &o.keys[joinRight]
	o.open = o.open[:0]
	for i := range int(rows.NumRows()) {
		if keys.null(i) {
			continue
		}
		key := keys.key(i)
		if o.found.lookup(key) >= 0 {
			continue
		}
		if o.spilled == nil && o.found.room(&o.memory, key, o.spec.most) {
			o.found.insertKey(key)
			continue
		}
		if o.spilled == nil {
			o.spilled = newSpilledSemiJoin(o.context, o.spec)
		}
		o.open = append(o.open, int32(i))
	}
	if len(o.open) == 0 {
		return nil
	}
	narrow := chosenColumns(o.spilled.keySchema, rows, o.spec.columns.right)
	defer narrow.Release()
	return o.spilled.right.add(keys, narrow, o.open, first)
}

// chosenColumns returns a batch of the given columns of rows, with the given schema.
func chosenColumns(schema *arrow.Schema, rows arrow.Record, columns []int) arrow.Record {
	cols := make([]arrow.Array, len(columns))
	for i, c := range columns {
		cols[i] = rows.Column(c)
	}
	return array.NewRecord(schema, cols, rows.NumRows())
}

func (o *semiJoiner) EndShard(_ *engine.Context, shard int, out engine.Output) error {
	if o.spilled != nil {
		err := o.spilled.emit(shard, o.anti, out)
		if closed := o.spilled.close(); err == nil {
			err = closed
		}
		o.spilled = nil
		if err != nil {
			return err
		}
	}
	o.found.clear()
	o.memory.release()
	o.indices = [2]rowIndex{}
	return nil
}

func (o *semiJoiner) Close() error {
	o.found.clear()
	o.memory.release()
	if o.spilled == nil {
		return nil
	}
	return o.spilled.close()
}

// spilledSemiJoin finds the partners of left rows whose keys are not in the set.
type spilledSemiJoin struct {
	most        int // bounds what is in memory; see joinSpec.most
	left, right *keySorter
	keySchema   *arrow.Schema // schema of the rows of right, which have only the key columns
	done        *placedRows   // the result, in the order of the indices of left rows
	picker      rowPicker
}

func newSpilledSemiJoin(c *engine.Context, spec *joinSpec) *spilledSemiJoin {
	fields := make([]arrow.Field, len(spec.columns.right))
	for i, column := range spec.columns.right {
		fields[i] = spec.right.Field(column)
	}
	keys := arrow.NewSchema(fields, nil)
	j := &spilledSemiJoin{most: spec.most, keySchema: keys, left: newKeySorter(c, spec.left), right: newKeySorter(c, keys), done: newPlacedRows(c, spec.left)}
	j.picker.to = j.done
	return j
}

// keep adds rows of a batch to the result. first is the index of the batch's first row.
func (j *spilledSemiJoin) keep(rows arrow.Record, indices []int32, first int64) error {
	for _, i := range indices {
		if err := j.picker.pick(rows, int(i), first+int64(i)); err != nil {
			return err
		}
	}
	return j.picker.flush()
}

// emit finds the partners of the remaining rows and emits the result.
func (j *spilledSemiJoin) emit(shard int, anti bool, out engine.Output) error {
	err := mergeKeys(j.left, j.right, j.most, func(_ []byte, left, right *rowSpool) error {
		if (right.count > 0) == anti {
			return nil
		}
		return eachRow(left, j.left.columns+1, j.picker.pick)
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
func (j *spilledSemiJoin) close() error {
	j.picker.close()
	return errors.Join(j.left.close(), j.right.close(), j.done.close())
}
