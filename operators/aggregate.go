package operators

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Aggregation is a value to compute from the rows of a group; see SumOf, MinOf, MaxOf, MeanOf,
// CountOf and CountRows. Nulls are ignored, as in SQL. If all values of a group are null, the
// result is null, or 0 for counts.
type Aggregation struct {
	kind   aggregationKind
	column string
	name   string
}

// aggregationKind says what an aggregation computes.
type aggregationKind int

const (
	sumOf aggregationKind = iota
	minOf
	maxOf
	meanOf
	countOf
	countRows
)

var aggregationNames = [...]string{"sum", "min", "max", "mean", "count", "count"}

// SumOf adds the values of a column; the result is by default the column "sum_<column>". A sum
// of integers is exact and has type int64. A sum outside of the range of int64 fails the run,
// but a sum of some of the values may be outside of that range. A sum of floats is a float64.
// Floats are added in the order of rows within each shard and then up the aligned binary tree
// over shards, so the sum has the same bits at any parallelism.
func SumOf(column string) Aggregation { return Aggregation{kind: sumOf, column: column} }

// MinOf finds the smallest value of a column in the order of Sort, in which NaN is greater than
// all numbers. The result is by default the column "min_<column>".
func MinOf(column string) Aggregation { return Aggregation{kind: minOf, column: column} }

// MaxOf finds the largest value of a column in the order of Sort, in which NaN is greater than
// all numbers. The result is by default the column "max_<column>".
func MaxOf(column string) Aggregation { return Aggregation{kind: maxOf, column: column} }

// MeanOf computes the mean of a column as float64. The result is by default the column
// "mean_<column>". The mean of integers is the float64 nearest to the exact mean. The mean of
// floats is the result of SumOf divided by the number of values.
func MeanOf(column string) Aggregation { return Aggregation{kind: meanOf, column: column} }

// CountOf counts the values of a column that are not null. The result is by default the column
// "count_<column>".
func CountOf(column string) Aggregation { return Aggregation{kind: countOf, column: column} }

// CountRows counts rows. The result is by default the column "count".
func CountRows() Aggregation { return Aggregation{kind: countRows} }

// As returns the aggregation with name as the name of its result column.
func (a Aggregation) As(name string) Aggregation {
	a.name = name
	return a
}

// Name returns the name of the column that the aggregation makes.
func (a Aggregation) Name() string {
	switch {
	case a.name != "":
		return a.name
	case a.kind == countRows:
		return "count"
	}
	return aggregationNames[a.kind] + "_" + a.column
}

// String returns the text that plans show, such as "sum(width) as total".
func (a Aggregation) String() string {
	return fmt.Sprintf("%s(%s) as %s", aggregationNames[a.kind], a.column, a.Name())
}

// Aggregate computes values from all rows. The result is one row, even if the dataset is empty,
// with a column for each aggregation. The row is in the last shard.
func Aggregate(d *engine.Dataset, aggs ...Aggregation) *engine.Dataset {
	const op = "Aggregate"
	builderOf(op, d)
	return addAggregate(op, d, nil, aggs)
}

// boundAggregation is an aggregation whose column has been found in the schema.
type boundAggregation struct {
	Aggregation
	from    int // index of the column that the aggregation reads; -1 for CountRows
	floats  bool
	partial []arrow.Field // columns that are sent from the first operator to the second
	result  arrow.Field
	state   func() aggregateState
}

// bindAggregation finds an aggregation's column and determines its types. empty is true if
// there may be groups without rows.
func bindAggregation(schema *arrow.Schema, a Aggregation, empty bool) (boundAggregation, error) {
	b := boundAggregation{Aggregation: a, from: -1}
	integer := arrow.Field{Name: a.Name(), Type: arrow.PrimitiveTypes.Int64}
	if a.kind == countRows {
		b.partial, b.result = []arrow.Field{integer}, integer
		b.state = func() aggregateState { return &countState{} }
		return b, nil
	}
	var err error
	if b.from, err = batch.FindColumn(schema, a.column); err != nil {
		return b, err
	}
	f := schema.Field(b.from)
	b.result = arrow.Field{Name: a.Name(), Type: f.Type, Nullable: f.Nullable || empty}
	b.floats = arrow.IsFloating(f.Type.ID())
	switch a.kind {
	case countOf:
		b.floats = false
		b.partial, b.result = []arrow.Field{integer}, integer
		b.state = func() aggregateState { return &countState{} }
	case minOf, maxOf:
		if err := batch.CheckSortable(schema, []batch.SortKey{{Column: b.from}}); err != nil {
			return b, fmt.Errorf("%s of column %q: values of type %s have no order", aggregationNames[a.kind], a.column, batch.TypeName(f.Type))
		}
		b.floats = false
		b.partial = []arrow.Field{{Name: a.Name(), Type: f.Type, Nullable: true}}
		b.state = func() aggregateState { return newExtreme(f.Type, a.kind == maxOf) }
	default:
		mean := a.kind == meanOf
		number := func(name string, dt arrow.DataType) arrow.Field { return arrow.Field{Name: name, Type: dt} }
		b.result.Type = arrow.PrimitiveTypes.Float64
		switch {
		case b.floats:
			b.partial = []arrow.Field{number(a.Name(), arrow.PrimitiveTypes.Float64), number("values", arrow.PrimitiveTypes.Int64)}
			b.state = func() aggregateState { return &floatSum{mean: mean} }
		case arrow.IsInteger(f.Type.ID()):
			if !mean {
				b.result.Type = arrow.PrimitiveTypes.Int64
			}
			b.partial = []arrow.Field{number("low", arrow.PrimitiveTypes.Uint64), number("high", arrow.PrimitiveTypes.Int64), number("values", arrow.PrimitiveTypes.Int64)}
			b.state = func() aggregateState { return &integerSum{column: a.column, mean: mean} }
		default:
			return b, fmt.Errorf("%s of column %q: its type is %s; only numbers can be added", aggregationNames[a.kind], a.column, batch.TypeName(f.Type))
		}
	}
	return b, nil
}

// addAggregate adds the two operators behind Aggregate and GroupBy. The first folds the rows of
// each group within a shard; the second folds these partial values over all shards.
func addAggregate(op string, d *engine.Dataset, keys []string, aggs []Aggregation) *engine.Dataset {
	b := builderOf(op, d)
	p, ok := planAggregate(op, d, keys, aggs)
	if !ok {
		return b.Poisoned(op)
	}
	return p.add(op, d, keys)
}

// add adds the two operators of the plan to the graph.
func (p *aggregatePlan) add(op string, d *engine.Dataset, keys []string) *engine.Dataset {
	b := d.Builder()
	attrs := []engine.Attr{{Key: "values", Value: joinText(p.aggs)}}
	order := engine.NoReduction
	for _, a := range p.aggs {
		if a.floats {
			order = engine.ShardTree
		}
	}
	combined := addPart(op, b, engine.Spec{
		Op:       "Combine",
		Attrs:    attrs,
		Schema:   arrowrows.Schema(p.partial.output),
		Inputs:   []engine.Port{{From: d, Use: p.reads(d, keys)}},
		Order:    order,
		Operator: func() engine.Operator { return &groupOperator{spec: p.partial} },
	})
	in := engine.Port{From: combined}
	if len(keys) > 0 {
		in.Partitioner, in.Keys = engine.Hash, keys
	}
	return b.Add(engine.Spec{
		Op:       op,
		Attrs:    attrs,
		Schema:   arrowrows.Schema(p.total.output),
		Inputs:   []engine.Port{in},
		Single:   len(keys) == 0,
		Order:    order,
		Operator: func() engine.Operator { return &groupOperator{spec: p.total} },
	})
}

// reads returns which columns of the input the aggregation reads.
func (p *aggregatePlan) reads(d *engine.Dataset, keys []string) engine.ColumnUse {
	use := engine.ColumnUse{Some: true, Reads: slices.Clone(keys)}
	for _, a := range p.aggs {
		if a.column != "" {
			use.Reads = append(use.Reads, a.column)
		}
	}
	return use
}

// joinText returns the texts of values as plans show them.
func joinText[T fmt.Stringer](values []T) string {
	s := ""
	for i, v := range values {
		if i > 0 {
			s += ", "
		}
		s += v.String()
	}
	return s
}

// aggregatePlan is shared by both operators of an aggregation.
type aggregatePlan struct {
	aggs           []boundAggregation
	partial, total *groupSpec
}

// planAggregate checks the arguments of an aggregation, records misuses, and determines its
// columns. The first operator sends rows with the keys, the partial values and the number of
// the source shard. The second operator emits rows with the keys and the results.
func planAggregate(op string, d *engine.Dataset, keys []string, aggs []Aggregation) (*aggregatePlan, bool) {
	b := builderOf(op, d)
	if !usable(d) {
		return nil, false
	}
	schema, ok := d.Schema(), true
	misuse := func(err error) {
		b.Errorf("%s: %w", op, err)
		ok = false
	}
	p := &aggregatePlan{partial: &groupSpec{input: arrowrows.Arrow(schema)}, total: &groupSpec{whole: len(keys) == 0}}
	p.partial.columns, ok = keyColumns(op, d, keys)
	if len(aggs) == 0 {
		misuse(fmt.Errorf("no aggregation is given: name at least one, such as SumOf or CountRows"))
	}
	var part, total []arrow.Field
	for i, c := range p.partial.columns {
		part = append(part, arrowrows.Arrow(schema).Field(c))
		p.total.columns = append(p.total.columns, i)
	}
	total = append(total, part...)
	for _, a := range aggs {
		bound, err := bindAggregation(arrowrows.Arrow(schema), a, len(keys) == 0)
		if err != nil {
			misuse(err)
			continue
		}
		if freeName(total, a.Name()) != a.Name() {
			misuse(fmt.Errorf("two columns would be named %q; give one another name with As", a.Name()))
			continue
		}
		total = append(total, bound.result)
		for _, f := range bound.partial {
			f.Name = freeName(part, f.Name)
			part = append(part, f)
		}
		if dt := bound.result.Type.ID(); dt == arrow.STRING || dt == arrow.BINARY {
			p.partial.growing = true
		}
		p.aggs = append(p.aggs, bound)
	}
	part = append(part, arrow.Field{Name: freeName(part, "shard"), Type: arrow.PrimitiveTypes.Int32})
	p.partial.output = arrow.NewSchema(part, nil)
	p.partial.folder = func(c *engine.Context) (groupFolder, error) { return newCombiner(c, p) }
	p.total.input = p.partial.output
	p.total.output = arrow.NewSchema(total, nil)
	p.total.growing = true // a group's size grows by slots that wait for their neighbours in the tree
	p.total.folder = func(c *engine.Context) (groupFolder, error) { return newShardMerger(c, p) }
	return p, ok
}

// keyColumns returns the indices of the key columns. If keys is not valid, it records a misuse
// and returns false.
func keyColumns(op string, d *engine.Dataset, keys []string) ([]int, bool) {
	ok := true
	seen := make(map[string]bool)
	var cols []int
	for _, key := range keys {
		col, found := findColumn(op, d, key)
		switch {
		case !found:
			ok = false
			continue
		case seen[key]:
			d.Builder().Errorf("%s: key %q is named twice", op, key)
			ok = false
			continue
		}
		seen[key] = true
		if err := batch.CheckHashable(arrowrows.Arrow(d.Schema()), []int{col}); err != nil {
			d.Builder().Errorf("%s: %w", op, err)
			ok = false
			continue
		}
		cols = append(cols, col)
	}
	return cols, ok
}
