package model_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/operators"
)

type point struct {
	X float64 `column:"x"`
}

type measured struct {
	X     float64 `column:"x"`
	Units float64 `column:"units"`
}

func TestApplyAddsColumns(t *testing.T) {
	trial.SameBits(t, func(b *engine.Builder) {
		rows := operators.FromSlice(b, []point{{1}, {2}, {0.3}})
		engine.Collect(scaler{Length: 3}.Transform(rows), "made")
		engine.Collect(scaler{Length: 3}.Transform(operators.FromSlice(b, []point(nil))), "none")
	})
	r := trial.Run(t, func(b *engine.Builder) {
		rows := operators.FromSlice(b, []point{{1}, {2}, {0.3}})
		m := model.Dataset(b, scaler{Length: 4})
		engine.Collect(m, "model")
		engine.Collect(measure(rows, m), "made")
	})
	rows, err := engine.Rows[measured](r, "made")
	require.NoError(t, err)
	require.Equal(t, []measured{{1, 0.25}, {2, 0.5}, {0.3, 0.3 / 4}}, rows)

	text, err := model.Encoded(r, "model")
	require.NoError(t, err)
	m, err := decodeScaler(text)
	require.NoError(t, err)
	require.Equal(t, 4.0, m.Length)
	_, err = model.Encoded(r, "made")
	require.Error(t, err)
	_, err = model.Encoded(r, "nothing")
	require.Error(t, err)
}

func TestApplyTellsWhatIsWrong(t *testing.T) {
	points := func(b *engine.Builder) *engine.Dataset { return operators.FromSlice(b, []point{{1}, {-2}}) }
	trial.Fails(t, func(b *engine.Builder) { measure(points(b), points(b)) }, "scaler.Measure", `no column "model"`, "scaler_test.go")
	trial.Fails(t, func(b *engine.Builder) { measure(points(b), nil) }, "the model is nil")
	trial.Fails(t, func(b *engine.Builder) { measure(nil, nil) }, "the dataset is nil")
	trial.Fails(t, func(b *engine.Builder) { model.Dataset(b, nil) }, "the model is nil")
	trial.Fails(t, func(b *engine.Builder) { model.Dataset(b, scaler{}) }, "length is 0")
	trial.Fails(t, func(b *engine.Builder) { scaler{Length: 1}.Transform(scaler{Length: 1}.Transform(points(b))) }, `column "units" exists already`)

	run := func(rows ...model.EncodedRow) func(b *engine.Builder) {
		return func(b *engine.Builder) {
			engine.Collect(measure(points(b), operators.FromSlice(b, rows)), "made")
		}
	}
	trial.Fails(t, run(), "the model has no row")
	trial.Fails(t, run(model.EncodedRow{"a"}, model.EncodedRow{"b"}), "more than one row")
	trial.Fails(t, run(model.EncodedRow{"{"}), "truncated")
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(scaler{Length: 1}.Transform(points(b)), "made")
	}, `row 0 of the shard: column "x" is -2`)
}

func TestApplyChecksTheColumns(t *testing.T) {
	for _, c := range []struct {
		output engine.Column
		want   string
	}{
		{engine.Column{Name: "units", Type: "int64"}, "declared"},
	} {
		trial.Fails(t, func(b *engine.Builder) {
			rows := operators.FromSlice(b, []point{{1}})
			engine.Collect(model.Apply("test", rows, model.Dataset(b, scaler{Length: 1}), model.Application{
				Op: "Nothing", Outputs: []engine.Column{c.output},
				Open: func([]byte, engine.Schema) (model.Compute, error) {
					return func(c *engine.Context, _ int, in engine.Batch) ([]columnar.Values, error) {
						x, err := columnar.Get[[]float64](in, "x")
						if err != nil {
							return nil, err
						}
						made, err := columnar.NewValues(c.Allocator, engine.Column{Name: "units", Type: "float64"}, x)
						return []columnar.Values{made}, err
					}, nil
				},
			}), "made")
		}, c.want)
	}
}

// TestApplyRefusesNoValues requires that the error for an output column without values names
// the column.
func TestApplyRefusesNoValues(t *testing.T) {
	trial.Fails(t, func(b *engine.Builder) {
		rows := operators.FromSlice(b, []point{{1}})
		engine.Collect(model.Apply("test", rows, model.Dataset(b, scaler{Length: 1}), model.Application{
			Op: "Nothing", Outputs: []engine.Column{{Name: "units", Type: "float64"}},
			Open: func([]byte, engine.Schema) (model.Compute, error) {
				return func(*engine.Context, int, engine.Batch) ([]columnar.Values, error) {
					return make([]columnar.Values, 1), nil
				}, nil
			},
		}), "made")
	}, `column "units" has no values`)
}
