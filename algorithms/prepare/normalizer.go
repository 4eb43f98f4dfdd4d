package prepare

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/enum"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Norm is a definition of the length of a vector.
type Norm int

const (
	// L2 is the Euclidean length.
	L2 Norm = iota
	// L1 is the sum of absolute values.
	L1
	// Max is the largest absolute value.
	Max
)

var norms = enum.Names[Norm]{Type: "Norm", What: "norm", Names: []string{"l2", "l1", "max"}}

// String returns "l2", "l1" or "max".
func (n Norm) String() string { return norms.String(n) }

// MarshalText implements encoding.TextMarshaler.
func (n Norm) MarshalText() ([]byte, error) { return norms.Text(n) }

// UnmarshalText implements encoding.TextUnmarshaler. It accepts what String returns.
func (n *Norm) UnmarshalText(text []byte) error { return norms.Parse(n, text) }

// Normalizer divides each vector by its length. It learns nothing from rows. Vectors of zeros
// are not changed, and null stays null. A vector with a NaN becomes a vector of NaNs. An
// infinity is an error that names row and column, because dividing by an infinite length would
// make all other components 0.
type Normalizer struct {
	// Columns are the vector columns. Required.
	Columns []string `json:"columns"`
	// Outputs names the new columns. If Outputs is empty, the new columns replace Columns.
	Outputs []string `json:"outputs,omitempty"`
	// Norm is the kind of length; the zero value is L2.
	Norm Norm `json:"norm"`
}

// Kind returns "normalizer".
func (Normalizer) Kind() string { return "normalizer" }

// Validate returns everything that is wrong with the parameters.
func (p Normalizer) Validate() error {
	return errors.Join(checkNames(p.Columns, p.Outputs), checkEnum(p.Norm))
}

func (p Normalizer) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return scaledFields(schema, p.Columns, p.Outputs, vectorColumns, "vectors: VectorAssembler makes one of numbers")
}

// Fit returns the model. It reads no rows.
func (p Normalizer) Fit(rows *engine.Dataset) *engine.Dataset {
	return fit(p, rows, func() *engine.Dataset {
		m := &NormalizerModel{Learned: Learned{kind: p.Kind(), inputs: knownInputs(arrowrows.Arrow(rows.Schema()), p.Columns)}, Params: p}
		return model.Dataset(rows.Builder(), m)
	})
}

// Apply adds the divided vectors to rows.
func (p Normalizer) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}

// NormalizerModel is a Normalizer together with the types of its columns.
type NormalizerModel struct {
	Learned `json:"-"`
	Params  Normalizer `json:"params"`
}

// Encode returns the model's file.
func (m *NormalizerModel) Encode() ([]byte, error) { return encode(m) }

// Transform adds the divided vectors to rows, replacing columns of the same names.
func (m *NormalizerModel) Transform(rows *engine.Dataset) *engine.Dataset { return transform(m, rows) }

func (m *NormalizerModel) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return m.Params.outputs(schema)
}

func (m *NormalizerModel) check() error { return m.Params.Validate() }

// Bind implements model.Binder.
func (m *NormalizerModel) Bind(l *model.Layout) (model.Step, error) {
	in, out, err := bindColumns(l, m.Params.Columns, OutputNames(m.Params.Columns, m.Params.Outputs))
	if err != nil {
		return nil, err
	}
	return func(row []model.Cell) error {
		for i := range in {
			from, to := &row[in[i]], &row[out[i]]
			var made []float64
			switch from.Kind {
			case model.NullCell:
				to.SetNull()
				continue
			case model.DenseCell:
				made = to.MakeDense(len(from.Values))
			case model.SparseCell:
				if err := from.CheckSparse(-1); err != nil {
					return columnError(m.Params.Columns[i], err)
				}
				var indices []int32
				indices, made = to.MakeSparse(from.Size, len(from.Values))
				copy(indices, from.Indices)
			default:
				return columnError(m.Params.Columns[i], fmt.Errorf("it is %s: want a vector", from.Kind))
			}
			if err := checkFinite(from); err != nil {
				return columnError(m.Params.Columns[i], err)
			}
			normalize(from.Values, made, m.Params.Norm)
		}
		return nil
	}, nil
}

// leastSquares and mostSquares are bounds of squared lengths. Beyond these bounds, sums of
// squares lose precision or leave the range of float64.
const (
	leastSquares = 0x1p-900
	mostSquares  = 0x1p900
)

// normalize writes x divided by its length to made. The length is summed in the order of the
// components.
func normalize(x, made []float64, norm Norm) {
	most, sum, squares := 0.0, 0.0, 0.0
	for _, v := range x {
		v = math.Abs(v)
		most = max(most, v)
		sum += v
		squares += float64(v * v)
	}
	length := most
	switch {
	case most == 0: // also if the vector has no components
		copy(made, x)
		return
	case norm == L1 && sum-sum == 0:
		length = sum
	case norm == L2 && squares > leastSquares && squares < mostSquares:
		length = math.Sqrt(squares)
	case norm != Max && most-most == 0:
		// After a division by the largest component, the squares are in the range of float64.
		sum, squares = 0, 0
		for j, v := range x {
			made[j] = v / most
			v = math.Abs(made[j])
			sum += v
			squares += float64(v * v)
		}
		if length = sum; norm == L2 {
			length = math.Sqrt(squares)
		}
		x = made
	}
	for j, v := range x {
		made[j] = v / length
	}
}

func nan() float64 { return math.NaN() }
