package operators

import (
	"cmp"
	"fmt"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// The shards of rows are chosen by ranges of keys, in three steps. Each step is an operator
// that the plan shows:
//
//   - SampleKeys draws a sample of the rows of each shard and keeps their keys, shard, index
//     and weight; the random numbers depend on shard and index;
//   - Splitters, on one subtask, sorts the sample and divides it into as many parts of equal
//     weight as there are shards;
//   - PlaceRows gets the bounds of the parts as a side input and adds a column with the shard
//     of each row. The next exchange sends every row to this shard.
//
// A bound is a row of the sample: its keys and, if rows with equal keys may be separated, its
// shard and index. The shard of a row is the number of bounds that are not greater than the
// row. No two rows are equal in keys, shard and index, so rows with equal keys can be
// distributed evenly and still keep their order.

// rangePort returns an input that sends the rows of placed to the shards in their last column.
func rangePort(placed *engine.Dataset, keys []SortBy) engine.Port {
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = k.column
	}
	return engine.Port{From: placed, Partitioner: engine.Range, Keys: names, Partition: placeByLastColumn}
}

// placeByLastColumn copies the shards of rows, which are in the last column of placed, to dst.
func placeByLastColumn(placed engine.Batch, _ int, _ int64, _ int, dst []int32) error {
	rows := arrowrows.Record(placed)
	copy(dst, rows.Column(int(rows.NumCols())-1).(*array.Int32).Int32Values())
	return nil
}

// placeRanges returns d with an additional last column, which has the shard of each row. If
// parting is true, rows with equal keys may get different shards. op is the function that the
// plan shows for the added operators.
func placeRanges(op string, d *engine.Dataset, keys []batch.SortKey, parting bool) *engine.Dataset {
	b := d.Builder()
	columns := make([]int, len(keys))
	fields := make([]arrow.Field, 0, len(keys)+3)
	ofSample := make([]batch.SortKey, len(keys)) // the keys are the first columns of the sample
	for i, k := range keys {
		columns[i] = k.Column
		fields = append(fields, arrowrows.Arrow(d.Schema()).Field(k.Column))
		ofSample[i] = k
		ofSample[i].Column = i
	}
	for _, name := range []string{"shard", "index", "weight"} {
		fields = append(fields, arrow.Field{Name: freeName(fields, name), Type: arrow.PrimitiveTypes.Int64})
	}
	purpose := b.OwnDrawPurpose("keys to range by", d)
	sample := addPart(op, b, engine.Spec{
		Op:     "SampleKeys",
		Schema: arrowrows.Schema(arrow.NewSchema(fields, nil)),
		Inputs: []engine.Port{{From: d}},
		Operator: func() engine.Operator {
			return &keySampler{schema: arrow.NewSchema(fields, nil), columns: columns, purpose: purpose}
		},
	})
	splitters := addPart(op, b, engine.Spec{
		Op:       "Splitters",
		Schema:   arrowrows.Schema(arrow.NewSchema(fields[:len(keys)+2], nil)),
		Inputs:   []engine.Port{{From: sample}},
		Single:   true,
		Operator: func() engine.Operator { return &splitterPicker{keys: ofSample} },
	})
	all := arrowrows.Arrow(d.Schema()).Fields()
	all = append(all, arrow.Field{Name: freeName(all, "destination"), Type: arrow.PrimitiveTypes.Int32})
	schema := arrow.NewSchema(all, nil)
	return addPart(op, b, engine.Spec{
		Op:     "PlaceRows",
		Schema: arrowrows.Schema(schema),
		Inputs: []engine.Port{{From: d}, {From: splitters, Side: true}},
		Operator: func() engine.Operator {
			return &rangePlacer{schema: schema, columns: columns, keys: ofSample, parting: parting}
		},
	})
}

// freeName returns name with as many underscores appended as necessary for a name that no field
// has.
func freeName(fields []arrow.Field, name string) string {
	for i := 0; i < len(fields); i++ {
		if fields[i].Name == name {
			name += "_"
			i = -1
		}
	}
	return name
}

// sampleRate decides which rows of a shard are drawn for the sample. It draws a row with
// probability 1/weight. The weight grows with the square root of the row's index: it is 1 for
// the first 15 rows, and w from row 4·w² on. Of n rows in a shard about 4·√n are drawn, and
// their weights add up to about n. So the sample has all rows of a small dataset, but only a
// small fraction of a large dataset. Even if one shard holds all rows, the sample is large
// enough to divide them evenly. The random numbers depend only on the operator's position in
// the graph, the shard and the index.
type sampleRate struct {
	draws  sharding.Random
	index  int64
	weight int64
}

// next returns the weight of the next row if the row is drawn, and otherwise 0.
func (s *sampleRate) next() int64 {
	s.index++
	if s.index >= 4*(s.weight+1)*(s.weight+1) {
		s.weight++
	}
	if x := s.draws.Uint64(); s.weight > 1 && x%uint64(s.weight) != 0 {
		return 0
	}
	return s.weight
}

// keySampler is the operator behind SampleKeys.
type keySampler struct {
	engine.BaseOperator
	schema  *arrow.Schema
	columns []int
	purpose string

	rate    sampleRate
	begun   bool
	picked  []int32
	numbers [3][]int64 // shard, index and weight of the drawn rows
}

func (o *keySampler) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	if !o.begun {
		o.begun = true
		o.rate = sampleRate{draws: c.Random(o.purpose, shard, 0), weight: 1}
	}
	o.picked = o.picked[:0]
	for i := range o.numbers {
		o.numbers[i] = o.numbers[i][:0]
	}
	for i := range int32(rows.NumRows()) {
		if weight := o.rate.next(); weight > 0 {
			o.picked = append(o.picked, i)
			o.numbers[0] = append(o.numbers[0], int64(shard))
			o.numbers[1] = append(o.numbers[1], o.rate.index-1)
			o.numbers[2] = append(o.numbers[2], weight)
		}
	}
	if len(o.picked) == 0 {
		return nil
	}
	keys, err := batch.Select(rows, o.columns)
	if err != nil {
		return err
	}
	defer keys.Release()
	return passRows(c, keys, o.picked, func(picked arrow.Record) error {
		cols := append([]arrow.Array(nil), picked.Columns()...)
		for _, values := range o.numbers {
			bld := array.NewInt64Builder(c.Allocator)
			bld.AppendValues(values, nil)
			col := bld.NewArray()
			bld.Release()
			defer col.Release()
			cols = append(cols, col)
		}
		return emitColumns(shard, o.schema, cols, picked.NumRows(), out)
	})
}

func (o *keySampler) EndShard(*engine.Context, int, engine.Output) error {
	o.begun = false
	return nil
}

// splitterPicker is the operator behind Splitters. The rows of the sample arrive in the order
// of shard and index, so a stable sort by the keys orders rows with equal keys by shard and
// index.
type splitterPicker struct {
	engine.BaseOperator
	keys   []batch.SortKey
	sorter *rowSorter
	total  int64 // sum of all weights
}

func (o *splitterPicker) Process(c *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	if o.sorter == nil {
		o.sorter = newRowSorter(c, rows.Schema(), o.keys)
	}
	for _, w := range weightsOf(rows) {
		o.total += w
	}
	return o.sorter.add(rows)
}

// weightsOf returns the weights of rows of a sample.
func weightsOf(rows arrow.Record) []int64 {
	return rows.Column(int(rows.NumCols()) - 1).(*array.Int64).Int64Values()
}

// Finish emits the bounds of all shards except the first. The bound of shard i is the first row
// of the sorted sample for which the weights of all rows before it add up to at least i/shards
// of the sum of all weights. If all n rows are in the sample, the bound of shard i is row
// i·n/shards of the sorted rows.
func (o *splitterPicker) Finish(c *engine.Context, out engine.Output) error {
	if o.sorter == nil {
		return nil
	}
	var (
		before int64 // sum of the weights of the rows before the current row
		shard  = 1
		picked []int32
	)
	return o.sorter.each(func(rows arrow.Record) error {
		picked = picked[:0]
		for i, w := range weightsOf(rows) {
			for shard < c.Shards {
				if share, _ := cut(o.total, c.Shards, shard); before < share {
					break
				}
				picked = append(picked, int32(i))
				shard++
			}
			before += w
		}
		if len(picked) == 0 {
			return nil
		}
		plain := array.NewRecord(o.schemaOf(rows), rows.Columns()[:len(o.keys)+2], rows.NumRows())
		defer plain.Release()
		return passRows(c, plain, picked, func(part arrow.Record) error { return out.Emit(c.Range.Hi-1, arrowrows.Batch(part)) })
	})
}

// schemaOf returns the schema of bounds: the schema of the sample without the column of
// weights.
func (o *splitterPicker) schemaOf(rows arrow.Record) *arrow.Schema {
	return arrow.NewSchema(rows.Schema().Fields()[:len(o.keys)+2], nil)
}

func (o *splitterPicker) Close() error {
	if o.sorter == nil {
		return nil
	}
	return o.sorter.close()
}

// rangePlacer is the operator behind PlaceRows.
type rangePlacer struct {
	engine.BaseOperator
	schema  *arrow.Schema
	columns []int
	keys    []batch.SortKey
	parting bool

	bounds         arrow.Record // bounds of the shards, owned; nil if there are none
	shards, places []int64      // bound -> its shard, and its index in this shard
	index          rowIndex
}

func (o *rangePlacer) Open(c *engine.Context) error {
	parts := c.Side(1)
	if len(parts) == 0 {
		return nil
	}
	var err error
	if o.bounds, err = batch.Concat(c.Allocator, arrowrows.Records(parts)); err != nil {
		return fmt.Errorf("the bounds of ranges: %w", err)
	}
	o.shards = o.bounds.Column(len(o.keys)).(*array.Int64).Int64Values()
	o.places = o.bounds.Column(len(o.keys) + 1).(*array.Int64).Int64Values()
	return nil
}

func (o *rangePlacer) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	first := o.index.batch(rows.NumRows())
	bld := array.NewInt32Builder(c.Allocator)
	defer bld.Release()
	bld.Resize(int(rows.NumRows()))
	if o.bounds == nil {
		for range rows.NumRows() {
			bld.UnsafeAppend(0)
		}
	} else if err := o.place(bld, rows, int64(shard), first); err != nil {
		return err
	}
	col := bld.NewArray()
	defer col.Release()
	return emitColumns(shard, o.schema, append(rows.Columns()[:rows.NumCols():rows.NumCols()], col), rows.NumRows(), out)
}

// place appends to bld the shard of each row.
func (o *rangePlacer) place(bld *array.Int32Builder, rows arrow.Record, shard, first int64) error {
	keys, err := batch.Select(rows, o.columns)
	if err != nil {
		return err
	}
	defer keys.Release()
	compare, err := batch.NewComparer(o.bounds, keys, o.keys)
	if err != nil {
		return err
	}
	bounds := int(o.bounds.NumRows())
	for i := range int(rows.NumRows()) {
		bld.UnsafeAppend(int32(sort.Search(bounds, func(j int) bool {
			order := compare.Compare(j, i)
			if order == 0 && o.parting {
				order = cmp.Or(cmp.Compare(o.shards[j], shard), cmp.Compare(o.places[j], first+int64(i)))
			}
			return order > 0
		})))
	}
	return nil
}

func (o *rangePlacer) EndShard(*engine.Context, int, engine.Output) error {
	o.index.endShard()
	return nil
}

func (o *rangePlacer) Close() error {
	if o.bounds != nil {
		o.bounds.Release()
		o.bounds = nil
	}
	return nil
}
