package selection

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Fold is a division of rows into rows to train on and rows to test on.
type Fold struct {
	Train, Test *engine.Dataset
}

// KFold divides rows at random into k parts whose sizes differ by at most one, and returns k
// folds. Each fold tests on one part and trains on the other parts. Rows keep their shards and
// their order. A seed of 0 means the seed of the job. Two calls with the same dataset, k and
// seed divide it in the same way. Divisions of other datasets are independent of this division,
// even if those datasets are computed from one of its folds.
func KFold(rows *engine.Dataset, k int, seed uint64) []Fold {
	return folds("selection.KFold", rows, "", k, seed)
}

// Stratified does what KFold does, and also divides the rows of each label evenly: the numbers
// of rows with the same label differ by at most one between parts. The sizes of the parts
// differ by at most one, too. A label with fewer than k rows is missing in some parts. The
// column label may have any scalar type; null counts as a label.
func Stratified(rows *engine.Dataset, label string, k int, seed uint64) []Fold {
	const op = "selection.Stratified"
	if label == "" {
		model.BuilderOf(op, rows).Errorf("%s: the label column is not named", op)
		return poisonedFolds(op, rows, k)
	}
	return folds(op, rows, label, k, seed)
}

// SplitOptions are the options of Split. In every field, the zero value selects the default.
type SplitOptions struct {
	// Test is the share of the rows to test on, between 0 and 1; 0 means 0.25. If there are at
	// least two rows, both Train and Test get at least one.
	Test float64
	// Stratify names a label column. Train and Test have its values in the same proportions, up
	// to one row. Empty means that rows are not stratified.
	Stratify string
	// Seed is the seed of the random draws; 0 means the seed of the job. Two splits of the same
	// dataset with the same options are equal. Splits of other datasets are independent of this
	// split, even if those datasets are computed from Train or Test.
	Seed uint64
}

// Split divides rows at random into rows to train on and rows to test on. The number of rows to
// test on is o.Test times the number of rows, rounded. Rows keep their shards and their order.
func Split(rows *engine.Dataset, o SplitOptions) Fold {
	const op = "selection.Split"
	b := model.BuilderOf(op, rows)
	if !(o.Test >= 0 && o.Test < 1) {
		b.Errorf("%s: Test is %v: want more than 0 and less than 1, or 0 for a quarter", op, o.Test)
		return poisonedFolds(op, rows, 1)[0]
	}
	if o.Test == 0 {
		o.Test = 0.25
	}
	return divide(op, rows, division{stratify: o.Stratify, test: o.Test, seed: o.Seed})[0]
}

// folds returns k folds of rows, stratified by the column label unless it is "". op is the name
// of the caller in messages.
func folds(op string, rows *engine.Dataset, label string, k int, seed uint64) []Fold {
	b := model.BuilderOf(op, rows)
	if k < 2 || k > 10_000 {
		b.Errorf("%s: k is %d: want 2 to 10000 folds", op, k)
		return poisonedFolds(op, rows, max(min(k, 10_000), 0))
	}
	return divide(op, rows, division{stratify: label, parts: k, seed: seed})
}

func poisonedFolds(op string, rows *engine.Dataset, k int) []Fold {
	list := make([]Fold, k)
	for i := range list {
		p := rows.Builder().Poisoned(op)
		list[i] = Fold{p, p}
	}
	return list
}

// divide adds the operators that assign rows to parts, and the operators that pick the rows of
// the parts.
func divide(op string, rows *engine.Dataset, d division) []Fold {
	b := rows.Builder()
	list := make([]Fold, max(d.parts, 1))
	if rows.Poisoned() {
		return poisonedFolds(op, rows, len(list))
	}
	if d.seed == 0 {
		d.seed = b.Seed()
	}
	d.purpose = "folds"
	if d.parts == 0 {
		d.purpose = "rows to test on"
	}
	d.purpose = b.DrawPurpose(d.purpose+" by "+strconv.Quote(d.stratify), rows)
	schema := rows.Schema()
	d.column = -1
	if d.stratify != "" {
		i, err := batch.FindColumn(arrowrows.Arrow(schema), d.stratify)
		if err == nil && batch.IsVector(arrowrows.Arrow(schema).Field(i).Type) {
			err = fmt.Errorf("column %q is %s: want numbers, text or another scalar type", d.stratify, batch.TypeName(arrowrows.Arrow(schema).Field(i).Type))
		}
		if err != nil {
			b.Errorf("%s: %w", op, err)
			return poisonedFolds(op, rows, len(list))
		}
		d.column = i
	}
	name := "part"
	for arrowrows.Arrow(schema).HasField(name) {
		name += "'"
	}
	numbered := arrow.NewSchema(append(slices.Clone(arrowrows.Arrow(schema).Fields()), arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int32}), nil)
	attrs := []engine.Attr{{Key: "seed", Value: fmt.Sprint(d.seed)}}
	if d.stratify != "" {
		attrs = append(attrs, engine.Attr{Key: "stratify", Value: d.stratify})
	}
	counts := b.Add(engine.Spec{
		Op: "CountClasses", Schema: arrowrows.SchemaOf[classCount](), Inputs: []engine.Port{{From: rows}},
		Operator: func() engine.Operator { return &classCounter{division: d} },
	})
	assigned := b.Add(engine.Spec{
		Op: "Divide", Attrs: attrs, Schema: arrowrows.Schema(numbered),
		Inputs:   []engine.Port{{From: rows}, {From: counts, Partitioner: engine.Broadcast, Side: true}},
		Operator: func() engine.Operator { return &divider{division: d, schema: numbered} },
	})
	pick := func(part int, others bool) *engine.Dataset {
		attrs := []engine.Attr{{Key: "part", Value: fmt.Sprint(part + 1)}, {Key: "others", Value: fmt.Sprint(others)}}
		return b.Add(engine.Spec{
			Op: "PickPart", Attrs: attrs, Schema: schema, Inputs: []engine.Port{{From: assigned}},
			Operator: func() engine.Operator {
				return &partOperator{schema: arrowrows.Arrow(schema), part: int32(part), others: others}
			},
		})
	}
	for i := range list {
		part := i
		if d.parts == 0 {
			part = testPart
		}
		list[i] = Fold{Train: pick(part, true), Test: pick(part, false)}
	}
	return list
}

// testPart is the number of the part to test on if rows are divided by the field test of
// division. The part to train on is then part 0.
const testPart = 1

// division describes how rows are divided. If parts is not 0, rows are divided into that number
// of parts. Otherwise the share test of the rows is assigned to testPart, and the rest to part
// 0.
type division struct {
	stratify string
	column   int // index of the column stratify; -1 if all rows are in one class
	parts    int
	test     float64
	seed     uint64
	purpose  string // name that makes the random draws independent of draws with other names
}

// maxClasses is the largest number of classes. It is limited because every subtask holds the
// counts of all classes for every shard.
const maxClasses = 10_000

// classCount has the number of rows of a class in a shard.
type classCount struct {
	Class string `column:"class"`
	Shard int64  `column:"shard"`
	Rows  int64  `column:"rows"`
}

// classOf appends a text that identifies the class of a row. Rows with a null form a separate
// class.
func classOf(dst []byte, p *batch.Printer, row int) []byte {
	if p.Null(row) {
		return append(dst, "null"...)
	}
	return p.Append(append(dst, '='), row)
}

// classCounter counts the rows of each class in each shard.
type classCounter struct {
	engine.BaseOperator
	division
	rows map[string]int64
	text []byte
}

func (o *classCounter) Process(_ *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	if o.rows == nil {
		o.rows = make(map[string]int64)
	}
	if o.column < 0 {
		o.rows[""] += rows.NumRows()
		return nil
	}
	p := batch.NewPrinter(rows.Column(o.column))
	for i := range int(rows.NumRows()) {
		o.text = classOf(o.text[:0], &p, i)
		if n, ok := o.rows[string(o.text)]; ok {
			o.rows[string(o.text)] = n + 1
			continue
		}
		if len(o.rows) == maxClasses {
			return fmt.Errorf("column %q has more than %d distinct values: stratify by a label with few", o.stratify, maxClasses)
		}
		o.rows[string(o.text)] = 1
	}
	return nil
}

func (o *classCounter) EndShard(c *engine.Context, shard int, out engine.Output) error {
	var list []classCount
	for class, n := range o.rows {
		list = append(list, classCount{class, int64(shard), n})
	}
	clear(o.rows)
	if list == nil {
		return nil
	}
	slices.SortFunc(list, func(a, b classCount) int {
		if a.Class < b.Class {
			return -1
		}
		return 1
	})
	return arrowrows.Emit(c.Allocator, out, shard, list)
}

// divider adds to every row the number of its part.
type divider struct {
	engine.BaseOperator
	division
	schema *arrow.Schema

	ids    map[string]int
	starts map[int][]int64 // shard -> number of rows of each class in earlier shards
	orders []permutation   // for each class: the order of its rows
	offset []int64         // for each class: number of rows of earlier classes; it balances the sizes of parts
	tests  []int64         // for each class: number of rows to test on

	next []int64 // for each class: number of rows before the next row
	text []byte
}

func (o *divider) Open(c *engine.Context) error {
	counts, err := arrowrows.Rows[classCount](c.Side(1)...)
	if err != nil {
		return err
	}
	classes := make(map[string]int64)
	for _, n := range counts {
		classes[n.Class] += n.Rows
	}
	if len(classes) > maxClasses {
		return fmt.Errorf("column %q has more than %d distinct values: stratify by a label with few", o.stratify, maxClasses)
	}
	var names []string
	total := int64(0)
	for name, n := range classes {
		names = append(names, name)
		total += n
	}
	slices.Sort(names)
	if total > 0 && total < int64(o.parts) {
		return fmt.Errorf("%d rows cannot be divided into %d parts", total, o.parts)
	}
	o.plan(names, classes, total)
	o.starts = make(map[int][]int64)
	seen := make([]int64, len(names))
	for i := 0; i < len(counts); {
		shard := counts[i].Shard
		o.starts[int(shard)] = slices.Clone(seen)
		for ; i < len(counts) && counts[i].Shard == shard; i++ {
			seen[o.ids[counts[i].Class]] += counts[i].Rows
		}
	}
	return nil
}

// plan sets ids, orders, offset and tests for the classes in names, which are in ascending
// order. rows has the number of rows of each class, and total is the number of all rows.
func (o *divider) plan(names []string, rows map[string]int64, total int64) {
	o.ids = make(map[string]int, len(names))
	tests := int64(math.Round(float64(o.test * float64(total))))
	if total > 1 {
		tests = min(max(tests, 1), total-1)
	}
	before := int64(0)
	for id, name := range names {
		n := rows[name]
		o.ids[name] = id
		o.orders = append(o.orders, newPermutation(o.seed, o.purpose, id, n))
		o.offset = append(o.offset, before)
		o.tests = append(o.tests, share(tests, before+n, total)-share(tests, before, total))
		before += n
	}
}

func (o *divider) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	if o.next == nil {
		o.next = slices.Clone(o.starts[shard])
	}
	n := int(rows.NumRows())
	b := array.NewInt32Builder(c.Allocator)
	defer b.Release()
	b.Reserve(n)
	var p batch.Printer
	if o.column >= 0 {
		p = batch.NewPrinter(rows.Column(o.column))
	}
	for i := range n {
		id := 0
		if o.column >= 0 {
			o.text = classOf(o.text[:0], &p, i)
			id = o.ids[string(o.text)]
		}
		b.UnsafeAppend(o.part(id, o.next[id]))
		o.next[id]++
	}
	parts := b.NewArray()
	defer parts.Release()
	made := array.NewRecord(o.schema, append(slices.Clone(rows.Columns()), parts), rows.NumRows())
	defer made.Release()
	return out.Emit(shard, arrowrows.Batch(made))
}

// part returns the number of the part of the i-th row of a class.
func (o *divider) part(class int, i int64) int32 {
	place := o.orders[class].at(i)
	if o.parts > 0 {
		return int32((place + o.offset[class]) % int64(o.parts))
	}
	if place < o.tests[class] {
		return testPart
	}
	return 0
}

func (o *divider) EndShard(*engine.Context, int, engine.Output) error {
	o.next = nil
	return nil
}

// partOperator keeps the rows of one part, or if others is set, the rows of all other parts. It
// drops the column of part numbers.
type partOperator struct {
	engine.BaseOperator
	schema *arrow.Schema
	part   int32
	others bool
	keep   []int32
}

func (o *partOperator) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	last := int(rows.NumCols()) - 1
	o.keep = o.keep[:0]
	for i, part := range rows.Column(last).(*array.Int32).Int32Values() {
		if (part == o.part) != o.others {
			o.keep = append(o.keep, int32(i))
		}
	}
	if len(o.keep) == 0 {
		return nil
	}
	plain := array.NewRecord(o.schema, rows.Columns()[:last], rows.NumRows())
	defer plain.Release()
	if len(o.keep) == int(rows.NumRows()) {
		return out.Emit(shard, arrowrows.Batch(plain))
	}
	picked, err := batch.Take(c.Allocator, plain, o.keep)
	if err != nil {
		return err
	}
	defer picked.Release()
	return out.Emit(shard, arrowrows.Batch(picked))
}
