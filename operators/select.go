package operators

import (
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Select keeps the named columns, in the given order, and drops the other columns.
func Select(d *engine.Dataset, columns ...string) *engine.Dataset {
	const op = "Select"
	b := builderOf(op, d)
	if !usable(d) {
		return b.Poisoned(op)
	}
	if len(columns) == 0 {
		b.Errorf("%s: no column is named; name the columns to keep", op)
		return b.Poisoned(op)
	}
	var fields []arrow.Field
	var from []int
	seen := map[string]bool{}
	ok := true
	for _, name := range columns {
		i, found := findColumn(op, d, name)
		switch {
		case !found:
			ok = false
			continue
		case seen[name]:
			b.Errorf("%s: column %q is named twice", op, name)
			ok = false
		}
		seen[name] = true
		from = append(from, i)
		fields = append(fields, arrowrows.Arrow(d.Schema()).Field(i))
	}
	if !ok {
		return b.Poisoned(op)
	}
	return addProjection(engine.Spec{
		Op:       op,
		Attrs:    []engine.Attr{{Key: "columns", Value: strings.Join(columns, ", ")}},
		Schema:   arrowrows.Schema(arrow.NewSchema(fields, nil)),
		Inputs:   []engine.Port{{From: d}},
		RowByRow: true,
	}, from)
}

// addProjection adds an operator whose output column i is column from[i] of its inputs, with
// the name and nullability in spec.Schema. If from is nil, the columns are all columns of the
// inputs.
func addProjection(spec engine.Spec, from []int) *engine.Dataset {
	schema := spec.Schema
	for i := range spec.Inputs {
		use := keeps(spec.Inputs[i].From)
		if from != nil {
			use.Passes = from
		}
		spec.Inputs[i].Use = use
	}
	spec.Operator = func() engine.Operator {
		return &projection{schema: arrowrows.Arrow(schema), from: from, cols: make([]arrow.Array, schema.Len())}
	}
	return spec.Inputs[0].From.Builder().Add(spec)
}

// projection is the operator behind Select, Rename and Union.
type projection struct {
	engine.BaseOperator
	schema *arrow.Schema
	from   []int
	cols   []arrow.Array // working space
}

func (o *projection) Process(_ *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	if o.from == nil {
		return emitColumns(shard, o.schema, rows.Columns(), rows.NumRows(), out)
	}
	for i, c := range o.from {
		o.cols[i] = rows.Column(c)
	}
	return emitColumns(shard, o.schema, o.cols, rows.NumRows(), out)
}
