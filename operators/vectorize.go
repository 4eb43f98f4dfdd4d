package operators

import (
	"fmt"
	"math"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Vectorize adds a column of vectors whose components are the values of the named columns, in
// the given order, and keeps all other columns. A number is one component; a bool is one
// component, 0 or 1; and a vector of a fixed size contributes all its components. The type of
// the new column is vector[n] for n components. Integers beyond 2^53 are rounded to the nearest
// float64.
//
// A null in one of the columns fails the run, and is reported with its row and column; replace
// nulls or filter such rows before. NaN and infinities are kept.
func Vectorize(d *engine.Dataset, name string, columns ...string) *engine.Dataset {
	const op = "Vectorize"
	b := builderOf(op, d)
	if !usable(d) {
		return b.Poisoned(op)
	}
	ok := newColumnName(op, d, name)
	if len(columns) == 0 {
		b.Errorf("%s: no column is named; name those that become the components of %q", op, name)
		ok = false
	}
	parts := make([]vectorPart, 0, len(columns))
	dim := 0
	for _, column := range columns {
		i, found := findColumn(op, d, column)
		if !found {
			ok = false
			continue
		}
		dt := arrowrows.Arrow(d.Schema()).Field(i).Type
		part := vectorPart{column: i, name: column, at: dim, dim: componentsOf(dt)}
		if part.dim == 0 {
			why := ""
			if batch.IsVector(dt) && dt.ID() != arrow.STRUCT {
				why = fmt.Sprintf("; where every row has n components, declare the field [n]float64, or the slice with the tag `column:\"%s,dim=n\"`", column)
			}
			b.Errorf("%s: column %q is %s; want numbers, bools or vectors of a fixed dimension%s", op, column, batch.TypeName(dt), why)
			ok = false
		}
		dim += min(part.dim, math.MaxInt32)
		parts = append(parts, part)
	}
	if !ok {
		return b.Poisoned(op)
	}
	dt, err := batch.VectorType(dim)
	if err != nil {
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	schema, _ := withField(arrowrows.Arrow(d.Schema()), arrow.Field{Name: name, Type: dt})
	return b.Add(engine.Spec{
		Op:       op,
		Attrs:    []engine.Attr{{Key: "column", Value: name}, {Key: "of", Value: strings.Join(columns, ", ")}},
		Schema:   arrowrows.Schema(schema),
		Inputs:   []engine.Port{{From: d, Use: keeps(d, columns...)}},
		RowByRow: true,
		Operator: func() engine.Operator { return &vectorizer{schema: schema, dim: dim, parts: parts} },
	})
}

// vectorPart is a column and the components that it contributes.
type vectorPart struct {
	column  int
	name    string
	at, dim int // index of the first component in the vector, and number of components
}

// componentsOf returns how many components a column of type dt contributes, or 0 if such a
// column cannot be part of a vector.
func componentsOf(dt arrow.DataType) int {
	switch {
	case batch.IsNumber(dt):
		return 1
	case dt.ID() == arrow.FIXED_SIZE_LIST:
		return batch.VectorDim(dt)
	}
	return 0
}

// vectorizer is the operator behind Vectorize.
type vectorizer struct {
	engine.BaseOperator
	schema *arrow.Schema
	dim    int
	parts  []vectorPart
	index  rowIndex
	block  []float64     // the vectors of a batch, row-major; working space
	cols   []arrow.Array // working space
}

func (o *vectorizer) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	first := o.index.batch(rows.NumRows())
	n := int(rows.NumRows())
	if need := n * o.dim; cap(o.block) < need {
		o.block = make([]float64, need)
	}
	o.block = o.block[:n*o.dim]
	if row, part := o.firstNull(rows); part != nil {
		return &engine.RowError{
			Row: first + int64(row), Err: fmt.Errorf("column %q is null, which no component of a vector can be", part.name),
			Cure: engine.FillOrLeaveOut, Advice: "fill it in or filter such rows out",
		}
	}
	for i := range o.parts {
		o.fill(&o.parts[i], rows.Column(o.parts[i].column))
	}
	made := batch.NewVectorArray(c.Allocator, o.block, o.dim)
	defer made.Release()
	o.cols = append(append(o.cols[:0], rows.Columns()...), made)
	return emitColumns(shard, o.schema, o.cols, rows.NumRows(), out)
}

// firstNull returns the first row of a batch with a null in any of the columns, and the column.
// It examines all columns before it decides, so that the reported null does not depend on how
// rows are divided into batches.
func (o *vectorizer) firstNull(rows arrow.Record) (row int, part *vectorPart) {
	for i := range o.parts {
		col := rows.Column(o.parts[i].column)
		if col.NullN() == 0 {
			continue
		}
		for r := range col.Len() {
			if part != nil && r >= row {
				break
			}
			if col.IsNull(r) {
				row, part = r, &o.parts[i]
				break
			}
		}
	}
	return row, part
}

// fill writes the components of one column, which has no nulls, to block.
func (o *vectorizer) fill(p *vectorPart, col arrow.Array) {
	to := o.block[p.at:]
	switch a := col.(type) {
	case *array.Float64:
		scatter(to, o.dim, a.Float64Values())
	case *array.Float32:
		scatter(to, o.dim, a.Float32Values())
	case *array.Int64:
		scatter(to, o.dim, a.Int64Values())
	case *array.Int32:
		scatter(to, o.dim, a.Int32Values())
	case *array.Int16:
		scatter(to, o.dim, a.Int16Values())
	case *array.Int8:
		scatter(to, o.dim, a.Int8Values())
	case *array.Uint64:
		scatter(to, o.dim, a.Uint64Values())
	case *array.Uint32:
		scatter(to, o.dim, a.Uint32Values())
	case *array.Uint16:
		scatter(to, o.dim, a.Uint16Values())
	case *array.Uint8:
		scatter(to, o.dim, a.Uint8Values())
	case *array.Boolean:
		for i := range a.Len() {
			to[i*o.dim] = 0
			if a.Value(i) {
				to[i*o.dim] = 1
			}
		}
	default:
		if data, _, ok := batch.DenseView(col); ok {
			spreadRows(to, o.dim, data, p.dim)
		} else if data, _, ok := batch.DenseView32(col); ok {
			spreadRows(to, o.dim, data, p.dim)
		}
	}
}

// number is the constraint of the Go types of number columns.
type number interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// scatter writes value i to element i·dim of to.
func scatter[T number](to []float64, dim int, values []T) {
	for i, v := range values {
		to[i*dim] = float64(v)
	}
}

// spreadRows writes row i of data, which has width values, to the elements i·dim to
// i·dim+width-1 of to.
func spreadRows[T number](to []float64, dim int, data []T, width int) {
	for i := range len(data) / width {
		for k, v := range data[i*width : (i+1)*width] {
			to[i*dim+k] = float64(v)
		}
	}
}

func (o *vectorizer) EndShard(*engine.Context, int, engine.Output) error {
	o.index.endShard()
	return nil
}
