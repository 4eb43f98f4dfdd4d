package kmeans

import (
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Columns of the checked points.
const (
	vectorColumn = "vector"
	weightColumn = "weight"
)

// layout is how the points of a dataset are held.
type layout int

const (
	denseRows  layout = iota // vector[d]
	raggedRows               // vector: of one length, which the data show
	sparseRows               // sparse, sparse[d]
)

// input says what the checked points of a dataset look like; it is known when
// the job is built.
type input struct {
	column   string // the user's vector column, for messages
	kind     string // its type, as schemas print it
	layout   layout
	dim      int // 0 where only the data show it
	weighted bool
	cosine   bool
	single   bool // float32
}

// vectorInput returns how the vector column of a schema is laid out.
func vectorInput(schema *arrow.Schema, column string, distance Distance) (input, error) {
	i, err := batch.FindColumn(schema, column)
	if err != nil {
		return input{}, err
	}
	in := input{column: column, kind: batch.TypeName(schema.Field(i).Type), dim: batch.VectorDim(schema.Field(i).Type), cosine: distance == Cosine}
	switch dt := schema.Field(i).Type.(type) {
	case *arrow.FixedSizeListType:
		in.layout = denseRows
	case *arrow.ListType:
		in.layout = raggedRows
	case *arrow.StructType:
		in.layout = sparseRows
	default:
		return input{}, fmt.Errorf("column %q is %s, not a vector: operators.Vectorize makes a vector of number columns", column, batch.TypeName(dt))
	}
	if !batch.IsVector(schema.Field(i).Type) {
		return input{}, fmt.Errorf("column %q is %s, not a vector", column, batch.TypeName(schema.Field(i).Type))
	}
	return in, nil
}

// checkPoints adds the operator that every training begins with: it checks the
// vectors and weights of the points and joins those of a shard into one batch,
// which the queues that initialise and that train then share without a copy.
func checkPoints(points *engine.Dataset, p Params) (*engine.Dataset, input, error) {
	schema := points.Schema()
	in, err := vectorInput(arrowrows.Arrow(schema), p.VectorCol, p.Distance)
	if err != nil {
		return nil, in, err
	}
	in.single = p.Precision == Single
	if in.single && in.layout == sparseRows {
		return nil, in, fmt.Errorf("column %q is sparse: single precision needs a dense vector", p.VectorCol)
	}
	if p.Init == Given && in.dim > 0 && in.dim != len(p.Centers[0]) {
		return nil, in, fmt.Errorf("column %q has %d components, the given centres have %d", p.VectorCol, in.dim, len(p.Centers[0]))
	}
	attrs := []engine.Attr{{Key: "vector", Value: p.VectorCol}, {Key: "non-finite", Value: p.NonFinite.String()}}
	vector, _ := batch.FindColumn(arrowrows.Arrow(schema), p.VectorCol)
	if in.single {
		attrs = append(attrs, engine.Attr{Key: "precision", Value: p.Precision.String()})
	}
	values := p.Precision.arrowType()
	fields := []arrow.Field{{Name: vectorColumn, Type: vectorsOf(arrowrows.Arrow(schema).Field(vector).Type, values)}}
	weight := -1
	if p.WeightCol != "" {
		if weight, err = batch.FindColumn(arrowrows.Arrow(schema), p.WeightCol); err != nil {
			return nil, in, fmt.Errorf("weight: %w", err)
		}
		if kind := arrowrows.Arrow(schema).Field(weight).Type; !isNumber(kind) {
			return nil, in, fmt.Errorf("weight: column %q is %s, not a number", p.WeightCol, batch.TypeName(kind))
		}
		in.weighted = true
		attrs = append(attrs, engine.Attr{Key: "weight", Value: p.WeightCol})
		fields = append(fields, arrow.Field{Name: weightColumn, Type: arrow.PrimitiveTypes.Float64})
	}
	checked := arrow.NewSchema(fields, nil)
	return points.Builder().Add(engine.Spec{
		Op:     "KMeansPoints",
		Attrs:  attrs,
		Schema: arrowrows.Schema(checked),
		Inputs: []engine.Port{{From: points}},
		Operator: func() engine.Operator {
			checker := &pointChecker{in: in, params: p, vector: vector, weight: weight, schema: checked}
			return rows.Joined(checker.check)
		},
	}), in, nil
}

// vectorsOf returns the type of dense vectors like dt whose components are of a type;
// other types as they are.
func vectorsOf(dt, values arrow.DataType) arrow.DataType {
	switch t := dt.(type) {
	case *arrow.FixedSizeListType:
		return arrow.FixedSizeListOfNonNullable(t.Len(), values)
	case *arrow.ListType:
		if arrow.TypeEqual(values, arrow.PrimitiveTypes.Float64) {
			return batch.VariableVectorType()
		}
		return arrow.ListOfNonNullable(values)
	}
	return dt
}

func isNumber(dt arrow.DataType) bool {
	return arrow.IsInteger(dt.ID()) || dt.ID() == arrow.FLOAT64 || dt.ID() == arrow.FLOAT32
}

// pointChecker is what the operator behind checkPoints does on one subtask.
type pointChecker struct {
	in             input
	params         Params
	vector, weight int
	schema         *arrow.Schema

	rows int // of the shard at hand, before the batch at hand
	keep []int32
}

// check returns the usable rows of a batch in the checked schema, owned; first is how many
// rows of the shard were before it.
func (o *pointChecker) check(c *engine.Context, first int, points arrow.Record) (arrow.Record, error) {
	o.rows = first
	vectors := points.Column(o.vector)
	vectors = toPrecision(c.Allocator, vectors, o.params.Precision)
	defer vectors.Release()
	columns := []arrow.Array{vectors}
	if o.weight >= 0 {
		weights, err := o.weights(c.Allocator, points.Column(o.weight))
		if err != nil {
			return nil, err
		}
		defer weights.Release()
		columns = append(columns, weights)
	}
	n := int(points.NumRows())
	if err := o.usable(vectors, points.Column(o.vector), n); err != nil {
		return nil, err
	}
	all := array.NewRecord(o.schema, columns, points.NumRows())
	if len(o.keep) == n {
		return all, nil
	}
	defer all.Release()
	c.Count("rows skipped", int64(n-len(o.keep)))
	return batch.Take(c.Allocator, all, o.keep)
}

// usable lists in o.keep the rows to train on, or names one that is refused; given are
// the vectors before their precision was changed.
func (o *pointChecker) usable(vectors, given arrow.Array, n int) error {
	o.keep = o.keep[:0]
	// Most batches have nothing to refuse: one pass tells.
	row, component, bad := batch.FirstNonFinite(vectors)
	for i := range n {
		switch {
		case vectors.IsNull(i):
			if o.params.NonFinite == Refuse {
				return o.refuse(i, "is null")
			}
			continue
		case bad && i == row:
			if o.params.NonFinite == Refuse {
				return o.refuse(i, fmt.Sprintf("component %d is %s", component, nonFiniteText(given, row, component)))
			}
			rest := array.NewSlice(vectors, int64(i+1), int64(n))
			next, at, more := batch.FirstNonFinite(rest)
			rest.Release()
			row, component, bad = i+1+next, at, more
			continue
		}
		o.keep = append(o.keep, int32(i))
	}
	if arr, ok := vectors.(*array.Struct); ok {
		for _, i := range o.keep {
			cell := sparseCell(arr, int(i), o.in.dim)
			if err := cell.CheckSparse(-1); err != nil {
				return &engine.RowError{Row: int64(o.rows + int(i)), Err: fmt.Errorf("column %q: %w", o.params.VectorCol, err)}
			}
		}
	}
	if o.in.cosine {
		for _, i := range o.keep {
			if zeroRow(vectors, int(i)) {
				return &engine.RowError{Row: int64(o.rows + int(i)), Err: fmt.Errorf("column %q is a vector of zeros, which has no direction: leave such rows out, or use Euclidean distance", o.params.VectorCol)}
			}
		}
	}
	return nil
}

func (o *pointChecker) refuse(i int, problem string) error {
	return &engine.RowError{
		Row: int64(o.rows + i), Err: fmt.Errorf("column %q: %s", o.params.VectorCol, problem),
		Cure: engine.LeaveOut, Advice: "set NonFinite to Skip to train without such rows",
	}
}

// nonFiniteText names the value that FirstNonFinite found.
func nonFiniteText(vectors arrow.Array, row, component int) string {
	switch value := componentOf(vectors, row, component); {
	case math.IsNaN(value):
		return "NaN"
	case finite(value):
		return fmt.Sprintf("%v, beyond the range of float32", value)
	case value > 0:
		return "+Inf"
	}
	return "-Inf"
}

// componentOf returns a component of a vector, at an index for sparse ones.
func componentOf(vectors arrow.Array, row, component int) float64 {
	one := array.NewSlice(vectors, int64(row), int64(row+1))
	defer one.Release()
	if csr, ok := batch.SparseView(one); ok {
		indices, values := csr.Row(0)
		for p, index := range indices {
			if int(index) == component {
				return values[p]
			}
		}
		return 0
	}
	whole := toPrecision(memory.DefaultAllocator, one, Double)
	defer whole.Release()
	return denseRow(whole, 0)[component]
}

// zeroRow reports whether every component of a vector is 0.
func zeroRow(vectors arrow.Array, row int) bool {
	values := denseRow(vectors, row)
	if arr, ok := vectors.(*array.Struct); ok {
		cell := sparseCell(arr, row, 0)
		values = cell.Values
	}
	for _, v := range values {
		if v != 0 {
			return false
		}
	}
	return true
}

// weights returns the weights as float64, owned, or names one that is refused.
func (o *pointChecker) weights(mem memory.Allocator, column arrow.Array) (arrow.Array, error) {
	for i := range column.Len() {
		problem := ""
		if column.IsNull(i) {
			problem = "null"
		} else if v := rows.NumberAt(column, i); !(v >= 0 && v <= math.MaxFloat64) {
			problem = fmt.Sprint(v)
		}
		if problem != "" {
			return nil, &engine.RowError{Row: int64(o.rows + i), Err: fmt.Errorf("column %q: the weight is %s; want a number of 0 or more", o.params.WeightCol, problem)}
		}
	}
	if column.DataType().ID() == arrow.FLOAT64 {
		column.Retain()
		return column, nil
	}
	b := array.NewFloat64Builder(mem)
	defer b.Release()
	b.Reserve(column.Len())
	for i := range column.Len() {
		b.UnsafeAppend(rows.NumberAt(column, i))
	}
	return b.NewArray(), nil
}
