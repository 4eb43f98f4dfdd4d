package model_test

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// scaler is a model for tests. It divides the column x by its length.
type scaler struct {
	Length float64 `json:"length"`
}

func (r scaler) Kind() string          { return "scaler" }
func (r scaler) Inputs() []model.Input { return []model.Input{{Column: "x", Type: "float64"}} }

func (r scaler) Encode() ([]byte, error) {
	if r.Length <= 0 {
		return nil, fmt.Errorf("scaler: length is %v: want a positive number", r.Length)
	}
	return model.Encode(r.Kind(), 1, r.Inputs(), nil, r)
}

func decodeScaler(file []byte) (scaler, error) {
	f, err := model.Decode(file, "scaler", 1)
	if err != nil {
		return scaler{}, err
	}
	var r scaler
	return r, model.Unmarshal(f.Payload, &r)
}

func (r scaler) Transform(rows *engine.Dataset) *engine.Dataset {
	return measure(rows, model.Dataset(model.BuilderOf("scaler", rows), r))
}

// measure adds the column "units".
func measure(rows, m *engine.Dataset) *engine.Dataset {
	return model.Apply("scaler.Measure", rows, m, model.Application{
		Op: "Measure", Outputs: arrowrows.Columns([]arrow.Field{{Name: "units", Type: arrow.PrimitiveTypes.Float64}}),
		Open: func(file []byte, schema engine.Schema) (model.Compute, error) {
			r, err := decodeScaler(file)
			if err != nil {
				return nil, err
			}
			at := arrowrows.Arrow(schema).FieldIndices("x")[0]
			return func(c *engine.Context, first int, in engine.Batch) ([]columnar.Values, error) {
				rows := arrowrows.Record(in)
				made := array.NewFloat64Builder(c.Allocator)
				defer made.Release()
				for i, v := range rows.Column(at).(*array.Float64).Float64Values() {
					if v < 0 {
						return nil, fmt.Errorf("row %d of the shard: column %q is %v: want at least 0", first+i, "x", v)
					}
					made.Append(v / r.Length)
				}
				return arrowrows.Values([]arrow.Array{made.NewArray()}), nil
			}, nil
		},
	})
}
