package gbdt

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
	"github.com/superstep-ml/superstep/operators"
)

// WithGroups adds an int64 column with the number of each row's query, from 0, for use as
// Params.GroupCol. It is meant for data that has only the number of rows of each query. sizes
// has a row for each query, in the order of the rows in d, and one column: how many consecutive
// rows of d the query has, 1 or more. Before it passes on the first row, WithGroups checks that
// the sizes add up to the number of rows in d. Errors about the columns are reported when the
// job is built, with the caller's line.
func WithGroups(d, sizes *engine.Dataset, column string) *engine.Dataset {
	const op = "gbdt.WithGroups"
	b := model.BuilderOf(op, d)
	switch {
	case d.Poisoned():
		return d
	case sizes == nil:
		return model.Refuse(b, op, fmt.Errorf("the sizes are nil: give a dataset of a row for each query"))
	case sizes.Poisoned():
		return sizes
	case sizes.Schema().Len() != 1 || !arrow.IsInteger(arrowrows.Arrow(sizes.Schema()).Field(0).Type.ID()):
		return model.Refuse(b, op, fmt.Errorf("the sizes have the columns %v: want one column, of integers", batch.Columns(arrowrows.Arrow(sizes.Schema()))))
	}
	numbered := operators.ZipWithIndex(d, column)
	if numbered.Poisoned() {
		return numbered
	}
	return b.Add(engine.Spec{
		Op: "NumberQueries", Attrs: []engine.Attr{{Key: "column", Value: column}}, Schema: numbered.Schema(),
		Inputs: []engine.Port{
			{From: numbered},
			{From: sizes, Partitioner: engine.Broadcast, Side: true},
			{From: operators.Count(d), Partitioner: engine.Broadcast, Side: true},
		},
		Operator: func() engine.Operator { return &grouper{schema: arrowrows.Arrow(numbered.Schema())} },
	})
}

// grouper is the operator of WithGroups. Its last input column has the row numbers, which it
// replaces by the numbers of the rows' queries.
type grouper struct {
	engine.BaseOperator
	schema *arrow.Schema
	ends   []int64 // for each query, the number of the first row after it
}

// Open computes ends from the sizes of the queries.
func (g *grouper) Open(c *engine.Context) error {
	rows, err := wholeNumbers(arrowrows.Records(c.Side(2)))
	if err != nil {
		return err
	}
	sizes, err := wholeNumbers(arrowrows.Records(c.Side(1)))
	if err != nil {
		return fmt.Errorf("the sizes of queries: %w", err)
	}
	var all, count int64
	for _, n := range rows {
		count += n
	}
	for q, n := range sizes {
		if n < 1 {
			return fmt.Errorf("the size of query %d is %d: want 1 or more rows", q, n)
		}
		if n > math.MaxInt64-all {
			return fmt.Errorf("the sizes of queries exceed 64 bits at query %d", q)
		}
		all += n
		sizes[q] = all
	}
	if all != count {
		return fmt.Errorf("the sizes of %d queries sum to %d rows, and there are %d: give the number of rows of each query, in the order of the rows", len(sizes), all, count)
	}
	g.ends = sizes
	return nil
}

// wholeNumbers returns the integers in the only column of the records.
func wholeNumbers(recs []arrow.Record) ([]int64, error) {
	var all []int64
	for _, rec := range recs {
		column := rec.Column(0)
		for i := range column.Len() {
			if column.IsNull(i) {
				return nil, fmt.Errorf("row %d is null", len(all))
			}
			v, err := strconv.ParseInt(column.ValueStr(i), 10, 64)
			if err != nil {
				return nil, fmt.Errorf("row %d: %s exceeds 63 bits", len(all), column.ValueStr(i))
			}
			all = append(all, v)
		}
	}
	return all, nil
}

// Process replaces the row numbers of a batch by query numbers. The rows of a batch have
// consecutive numbers.
func (g *grouper) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	n := int(rows.NumRows())
	if n == 0 {
		return nil
	}
	last := int(rows.NumCols()) - 1
	first := rows.Column(last).(*array.Int64).Value(0)
	query, _ := slices.BinarySearch(g.ends, first+1)
	b := array.NewInt64Builder(c.Allocator)
	defer b.Release()
	b.Reserve(n)
	for row := first; row < first+int64(n); row++ {
		if row == g.ends[query] {
			query++
		}
		b.UnsafeAppend(int64(query))
	}
	made := b.NewInt64Array()
	defer made.Release()
	columns := append(slices.Clone(rows.Columns()[:last]), made)
	rec := array.NewRecord(g.schema, columns, int64(n))
	defer rec.Release()
	return out.Emit(shard, arrowrows.Batch(rec))
}
