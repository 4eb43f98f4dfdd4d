package builtin

import (
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// skippedCounter counts the rows that an operator leaves out.
const skippedCounter = "rows skipped"

// completeness says what becomes of rows that lack a value in one of some columns.
type completeness struct {
	columns []string
	// skip leaves such rows out and counts them; otherwise the first is an error.
	skip bool
	// finite counts infinities as missing.
	finite bool
}

// complete adds what looks for missing values before anything learns from rows: null, and NaN
// in numbers and vectors.
func complete(rows *engine.Dataset, o completeness) *engine.Dataset {
	if rows.Poisoned() {
		return rows
	}
	return rows.Builder().Add(engine.Spec{
		Op:       "Complete",
		Schema:   rows.Schema(),
		Inputs:   []engine.Port{{From: rows}},
		RowByRow: !o.skip,
		Operator: func() engine.Operator { return &completer{completeness: o} },
	})
}

// completer is the operator behind complete.
type completer struct {
	completeness
	at      []int // of the columns
	reader  *model.Reader
	row     []model.Cell
	vectors []int // those of them that are read by cells, the first of which are the columns
	missing []bool
	keep    []int32
	rows    int // of the shard at hand, seen so far
}

func (o *completer) Open(*engine.Context) error { return nil }

// bind finds the columns in the first batch.
func (o *completer) bind(schema *arrow.Schema) error {
	layout := model.NewLayout(names(schema)...)
	for _, c := range o.columns {
		i := schema.FieldIndices(c)[0]
		o.at = append(o.at, i)
		if sortOf(schema.Field(i).Type) != vectors {
			continue
		}
		cell, err := layout.Find(c)
		if err != nil {
			return err
		}
		o.vectors = append(o.vectors, cell)
	}
	var err error
	o.reader, err = model.NewReader(schema, layout)
	o.row = layout.NewRow()
	return err
}

func (o *completer) Process(c *engine.Context, _, shard int, rows arrow.Record, out engine.Output) error {
	if o.reader == nil {
		if err := o.bind(rows.Schema()); err != nil {
			return err
		}
	}
	n := int(rows.NumRows())
	first, column, what := o.look(rows)
	if first >= 0 && !o.skip {
		e := &engine.RowError{Row: int64(o.rows + first), Err: fmt.Errorf("column %q: %s", o.columns[column], what), Cure: engine.FillOrLeaveOut}
		if slices.Contains(o.vectors, o.at[column]) { // which nothing fills in
			e.Cure = engine.LeaveOut
		}
		return e
	}
	o.rows += n
	if first < 0 {
		return out.Emit(shard, rows)
	}
	o.keep = o.keep[:0]
	for i, missing := range o.missing {
		if !missing {
			o.keep = append(o.keep, int32(i))
		}
	}
	c.Count(skippedCounter, int64(n-len(o.keep)))
	kept, err := batch.Take(c.Allocator, rows, o.keep)
	if err != nil {
		return err
	}
	defer kept.Release()
	return out.Emit(shard, kept)
}

// look marks the rows that lack something, and returns the first with the column and what
// is wrong there; -1 where there is none.
func (o *completer) look(rows arrow.Record) (first, column int, what string) {
	if n := int(rows.NumRows()); cap(o.missing) < n {
		o.missing = make([]bool, n)
	} else {
		o.missing = o.missing[:n]
		clear(o.missing)
	}
	first = -1
	note := func(row, of int, is string) {
		o.missing[row] = true
		if first < 0 || row < first {
			first, column, what = row, of, is
		}
	}
	for k, at := range o.at {
		values := rows.Column(at)
		for i := 0; values.NullN() > 0 && i < values.Len(); i++ {
			if values.IsNull(i) {
				note(i, k, "it is null")
			}
		}
		switch values := values.(type) {
		case *array.Float64:
			for i, v := range values.Float64Values() {
				if v-v != 0 && values.IsValid(i) && o.lacks(v) {
					note(i, k, fmt.Sprint("it is ", v))
				}
			}
		case *array.Float32:
			for i, v := range values.Float32Values() {
				if v-v != 0 && values.IsValid(i) && o.lacks(float64(v)) {
					note(i, k, fmt.Sprint("it is ", v))
				}
			}
		}
	}
	if len(o.vectors) == 0 {
		return first, column, what
	}
	o.reader.Reset(rows)
	for i := range int(rows.NumRows()) {
		o.reader.Read(i, o.row)
		for _, cell := range o.vectors {
			c := &o.row[cell]
			for at, v := range c.Values {
				if v-v == 0 || c.Kind == model.NullCell || !o.lacks(v) {
					continue
				}
				if c.Kind == model.SparseCell {
					at = int(c.Indices[at])
				}
				note(i, slices.Index(o.at, cell), fmt.Sprintf("component %d is %v", at, v))
			}
		}
	}
	return first, column, what
}

// lacks says that a number which is not finite is missing.
func (o *completer) lacks(v float64) bool { return o.finite || math.IsNaN(v) }

func (o *completer) EndShard(*engine.Context, int, engine.Output) error {
	o.rows = 0
	return nil
}

func (o *completer) Finish(*engine.Context, engine.Output) error { return nil }
func (o *completer) Close() error                                { return nil }

// withMissing adds to the rows of training what --missing asks for before a stage learns from
// them: algorithms leave rows out themselves, but not before the stages that make their
// features, and trees take missing features as they are.
func (a TrainArgs) withMissing(rows *engine.Dataset, p *arrangement, g goal, raw bool) *engine.Dataset {
	if a.Missing == "fill" || len(p.stages) == 0 && !(raw && a.Missing != "") {
		return rows
	}
	o := completeness{columns: p.wanted, skip: p.skip, finite: p.skip && len(p.stages) > 0}
	if p.skip { // a row that is left out is so before anything learns from it
		o.columns = slices.DeleteFunc(fromFile(p.reads), func(c string) bool { return c == p.label && g == clustersGoal })
	}
	return complete(rows, o)
}
