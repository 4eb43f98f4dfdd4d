package prepare

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Bucketizer replaces each number by the number of its bucket, an int64. n bounds make n+1
// buckets. The bucket of a value is the number of bounds that are less than or equal to the
// value.
type Bucketizer struct {
	// Columns are the columns of numbers. Required.
	Columns []string `json:"columns"`
	// Outputs names the columns of buckets. If Outputs is empty, the columns of buckets replace
	// Columns.
	Outputs []string `json:"outputs,omitempty"`
	// Bounds has one list of bounds for each column, or a single list for all columns. The
	// bounds of a list are finite and increasing. Required.
	Bounds [][]float64 `json:"bounds"`
	// Unknown says what happens to null and NaN. Keep puts them into an additional bucket after
	// the last bucket.
	Unknown Unknown `json:"unknown"`
}

// Kind returns "bucketizer".
func (Bucketizer) Kind() string { return "bucketizer" }

// Validate returns everything that is wrong with the parameters.
func (p Bucketizer) Validate() error {
	errs := []error{checkNames(p.Columns, p.Outputs), checkEnum(p.Unknown), p.Unknown.encoders()}
	if n := len(p.Bounds); n == 0 || n != 1 && n != len(p.Columns) {
		errs = append(errs, fmt.Errorf("there are Bounds of %d columns for %d Columns: want a list for each, or one for all", n, len(p.Columns)))
	}
	for i, list := range p.Bounds {
		if len(list) == 0 {
			errs = append(errs, wrong("Bounds[%d] is empty", i))
		}
		errs = append(errs, checkBounds(fmt.Sprintf("Bounds[%d]", i), list))
	}
	return errors.Join(errs...)
}

// checkBounds checks that bounds are finite and increasing.
func checkBounds(what string, list []float64) error {
	for k, v := range list {
		if v-v != 0 {
			return fmt.Errorf("%s[%d] is %v: want a finite number", what, k, v)
		}
		if k > 0 && list[k-1] >= v {
			return fmt.Errorf("%s[%d] is %v, after %v: want increasing numbers", what, k, v, list[k-1])
		}
	}
	return nil
}

func (p Bucketizer) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return indexFields(schema, p.Columns, p.Outputs, numberColumns, "numbers")
}

// Fit returns the model. It reads no rows.
func (p Bucketizer) Fit(rows *engine.Dataset) *engine.Dataset {
	return fit(p, rows, func() *engine.Dataset {
		m := &BucketModel{Columns: p.Columns, Outputs: OutputNames(p.Columns, p.Outputs), Unknown: p.Unknown}
		m.Learned = Learned{kind: p.Kind(), inputs: knownInputs(arrowrows.Arrow(rows.Schema()), p.Columns)}
		for i := range p.Columns {
			m.Bounds = append(m.Bounds, p.Bounds[min(i, len(p.Bounds)-1)])
		}
		return model.Dataset(rows.Builder(), m)
	})
}

// knownInputs returns the inputs for columns of a schema that contains all of them.
func knownInputs(schema *arrow.Schema, columns []string) []model.Input {
	var fields []arrow.Field
	for _, name := range columns {
		fields = append(fields, schema.Field(schema.FieldIndices(name)[0]))
	}
	return inputsOf(arrow.NewSchema(fields, nil))
}

// Apply adds the columns of buckets to rows.
func (p Bucketizer) Apply(rows, m *engine.Dataset) *engine.Dataset {
	return apply(p, p.Kind(), rows, m, p.outputs)
}

// BucketModel has the bounds of a Bucketizer or QuantileDiscretizer.
type BucketModel struct {
	Learned `json:"-"`
	Columns []string    `json:"columns"`
	Outputs []string    `json:"outputs"`
	Bounds  [][]float64 `json:"bounds"` // a list of increasing bounds for each column
	Unknown Unknown     `json:"unknown"`
}

// Encode returns the model's file.
func (m *BucketModel) Encode() ([]byte, error) { return encode(m) }

// Transform adds the columns of buckets to rows, replacing columns of the same names.
func (m *BucketModel) Transform(rows *engine.Dataset) *engine.Dataset { return transform(m, rows) }

func (m *BucketModel) outputs(schema *arrow.Schema) ([]arrow.Field, error) {
	return indexFields(schema, m.Columns, m.Outputs, numberColumns, "numbers")
}

func (m *BucketModel) check() error {
	if len(m.Bounds) != len(m.Columns) || len(m.Outputs) != len(m.Columns) {
		return fmt.Errorf("there are %d columns, %d outputs and bounds of %d", len(m.Columns), len(m.Outputs), len(m.Bounds))
	}
	return Bucketizer{Columns: m.Columns, Outputs: m.Outputs, Bounds: m.Bounds, Unknown: m.Unknown}.Validate()
}

// Bind implements model.Binder.
func (m *BucketModel) Bind(l *model.Layout) (model.Step, error) {
	in, out, err := bindColumns(l, m.Columns, m.Outputs)
	if err != nil {
		return nil, err
	}
	return func(row []model.Cell) error {
		for i := range in {
			from := &row[in[i]]
			v, ok := from.Number()
			bucket := len(m.Bounds[i]) + 1
			switch {
			case ok && v == v:
				bucket = bucketOf(m.Bounds[i], v)
			case !ok && from.Kind != model.NullCell:
				return columnError(m.Columns[i], fmt.Errorf("it is %s: want a number", from.Kind))
			case m.Unknown == Keep:
			case m.Unknown == Skip:
				return model.ErrSkip
			default:
				return unknownValue(m.Columns[i], from)
			}
			row[out[i]].SetInt(int64(bucket))
		}
		return nil
	}, nil
}

// bucketOf returns the number of bounds that are less than or equal to v.
func bucketOf(bounds []float64, v float64) int {
	at, found := slices.BinarySearch(bounds, v)
	if found {
		at++
	}
	return at
}
