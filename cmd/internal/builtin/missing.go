package builtin

import (
	"fmt"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// skippedCounter names the counter of the rows that an operator leaves out. infiniteCounter
// names the counter of the rows among them that have infinite values but no missing values.
const (
	skippedCounter  = "rows skipped"
	infiniteCounter = "rows with infinite values skipped"
)

// completeness configures what happens to rows that have a defect in one of the columns.
// Missing values are defects unless spare is set.
type completeness struct {
	columns []string
	// skip: rows with a defect are left out and counted. If skip is not set, a row with a
	// defect is an error.
	skip bool
	// finite: infinite values are defects too.
	finite bool
	// spare: missing values are not defects.
	spare bool
}

// completeOp is the name of the operator that complete adds.
const completeOp = "Complete"

// complete adds an operator that refuses or leaves out rows with defects before a stage or an
// algorithm learns from them. Missing values are null, and NaN in numbers and vectors.
func complete(rows *engine.Dataset, o completeness) *engine.Dataset {
	if rows.Poisoned() {
		return rows
	}
	return rows.Builder().Add(engine.Spec{
		Op:       completeOp,
		Schema:   rows.Schema(),
		Inputs:   []engine.Port{{From: rows}},
		RowByRow: !o.skip,
		Operator: func() engine.Operator { return &completeOperator{completeness: o} },
	})
}

// defect is the defect of a row.
type defect uint8

const (
	noDefect defect = iota
	infinite
	missing // also the defect of a row with both missing and infinite values
)

// completeOperator is the operator that complete adds.
type completeOperator struct {
	engine.BaseOperator
	completeness
	at      []int // at[i] is the index of columns[i] in the schema
	reader  *model.Reader
	row     []model.Cell
	vectors []int // indices of vector columns in the schema, and of their cells in row
	marked  []defect
	keep    []int32
	rows    int // rows of this shard seen so far
}

// bind looks up the columns in the schema of the first batch.
func (o *completeOperator) bind(schema *arrow.Schema) error {
	layout := model.NewLayout(names(schema)...)
	for _, c := range o.columns {
		i := schema.FieldIndices(c)[0]
		o.at = append(o.at, i)
		if columnTypeOf(schema.Field(i).Type) != vectors {
			continue
		}
		cell, err := layout.Find(c)
		if err != nil {
			return err
		}
		o.vectors = append(o.vectors, cell)
	}
	var err error
	o.reader, err = model.NewReader(arrowrows.Schema(schema), layout)
	o.row = layout.NewRow()
	return err
}

func (o *completeOperator) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	if o.reader == nil {
		if err := o.bind(rows.Schema()); err != nil {
			return err
		}
	}
	n := int(rows.NumRows())
	first, column, what := o.mark(rows)
	if first >= 0 && !o.skip {
		e := &engine.RowError{Row: int64(o.rows + first), Err: fmt.Errorf("column %q: %s", o.columns[column], what), Cure: engine.FillOrLeaveOut}
		if o.marked[first] == infinite || slices.Contains(o.vectors, o.at[column]) { // no stage can replace such a value
			e.Cure = engine.LeaveOut
		}
		return e
	}
	o.rows += n
	if first < 0 {
		return out.Emit(shard, arrowrows.Batch(rows))
	}
	o.keep = o.keep[:0]
	var without int64
	for i, m := range o.marked {
		switch m {
		case noDefect:
			o.keep = append(o.keep, int32(i))
		case infinite:
			without++
		}
	}
	c.Count(skippedCounter, int64(n-len(o.keep)))
	if without > 0 {
		c.Count(infiniteCounter, without)
	}
	kept, err := batch.Take(c.Allocator, rows, o.keep)
	if err != nil {
		return err
	}
	defer kept.Release()
	return out.Emit(shard, arrowrows.Batch(kept))
}

// mark sets o.marked to the defects of rows. It returns the first row with a defect, the index
// in o.columns of the column with that defect, and a description of the defect. first is -1 if
// no row has a defect.
func (o *completeOperator) mark(rows arrow.Record) (first, column int, what string) {
	o.marked = slices.Grow(o.marked[:0], int(rows.NumRows()))[:rows.NumRows()]
	clear(o.marked)
	first = -1
	note := func(row, of int, m defect, is string) {
		o.marked[row] = max(o.marked[row], m)
		if first < 0 || row < first {
			first, column, what = row, of, is
		}
	}
	for k, at := range o.at {
		values := rows.Column(at)
		for i := 0; values.NullN() > 0 && !o.spare && i < values.Len(); i++ {
			if values.IsNull(i) {
				note(i, k, missing, "it is null")
			}
		}
		switch values := values.(type) {
		case *array.Float64:
			for i, v := range values.Float64Values() {
				if m := o.defectOf(v); m != noDefect && values.IsValid(i) {
					note(i, k, m, fmt.Sprint("it is ", v))
				}
			}
		case *array.Float32:
			for i, v := range values.Float32Values() {
				if m := o.defectOf(float64(v)); m != noDefect && values.IsValid(i) {
					note(i, k, m, fmt.Sprint("it is ", v))
				}
			}
		}
	}
	if len(o.vectors) == 0 {
		return first, column, what
	}
	o.reader.Reset(arrowrows.Batch(rows))
	for i := range int(rows.NumRows()) {
		o.reader.Read(i, o.row)
		for _, cell := range o.vectors {
			c := &o.row[cell]
			for at, v := range c.Values {
				m := o.defectOf(v)
				if m == noDefect || c.Kind == model.NullCell {
					continue
				}
				if c.Kind == model.SparseCell {
					at = int(c.Indices[at])
				}
				note(i, slices.Index(o.at, cell), m, fmt.Sprintf("component %d is %v", at, v))
			}
		}
	}
	return first, column, what
}

// defectOf returns the defect of a row that contains the number v.
func (o *completeOperator) defectOf(v float64) defect {
	switch {
	case v-v == 0:
		return noDefect
	case math.IsNaN(v) && !o.spare:
		return missing
	case math.IsInf(v, 0) && o.finite:
		return infinite
	}
	return noDefect
}

func (o *completeOperator) EndShard(*engine.Context, int, engine.Output) error {
	o.rows = 0
	return nil
}

// withMissing adds the operator that function complete returns to the training rows, if the
// value of --missing and the plan require that operator. Algorithms leave out rows with missing
// values themselves, but they do so only after the stages before them have learnt from these
// rows, and they do not report the reason. Trees
// accept missing features, so for missing features they do not need the operator. The operator
// also finds infinite values, because after the stages it is not known which column an infinite
// value comes from.
func (a TrainArgs) withMissing(rows *engine.Dataset, p *columnPlan, g model.Target, raw bool) *engine.Dataset {
	made := len(p.stages) > 0
	if a.Missing == "fill" || !made && !(raw && a.Missing != "") && !(p.skip && p.vector == "") {
		return rows
	}
	o := completeness{columns: p.wanted, skip: p.skip, finite: !raw || p.skip && made}
	if p.skip { // rows with a missing label, weight or group are left out too
		o.columns = slices.DeleteFunc(fromFile(p.reads), func(c string) bool { return c == p.label && g == model.Cluster })
	}
	return complete(rows, o)
}

// finiteTest adds an operator that refuses infinite numbers in the features of --test if stages
// transform the features. Without that operator, the error of the model could name only a
// component of the transformed vector.
func finiteTest(rows *engine.Dataset, p *columnPlan, raw bool) *engine.Dataset {
	if raw || len(p.stages) == 0 {
		return rows
	}
	return complete(rows, completeness{columns: p.wanted, finite: true, spare: true})
}

// finiteFor adds an operator that refuses infinite numbers in columns that a model assembles
// into a vector of features, if the features must be finite.
func finiteFor(m model.Model, rows *engine.Dataset) *engine.Dataset {
	stages := stagesOf(m)
	if rows.Poisoned() || len(stages) < 2 || takesMissing(m) {
		return rows
	}
	assembler, ok := stages[len(stages)-2].(*prepare.AssemblerModel)
	if !ok {
		return rows
	}
	read := inputsOf(m)
	var columns []string
	for _, c := range assembler.Params.Columns {
		if c = sourceOf(m, c); slices.Contains(read, c) {
			columns = append(columns, c)
		}
	}
	if len(columns) == 0 {
		return rows
	}
	return complete(rows, completeness{columns: columns, finite: true, spare: true})
}
