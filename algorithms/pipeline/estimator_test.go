package pipeline_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// TestEstimatorsInPipelines requires that estimators can be the last stage of a pipeline. A job
// that only applies the model, and a Scorer, must compute the same columns as the job that
// trained the pipeline.
func TestEstimatorsInPipelines(t *testing.T) {
	for name, estimator := range map[string]model.Stage{
		"kmeans":   kmeans.Params{VectorCol: "features", K: 4},
		"logistic": logistic.Params{VectorCol: "features", LabelCol: "survived", L2: 0.01},
		"words":    logistic.Params{VectorCol: "features", LabelCol: "alive", L2: 0.01},
	} {
		t.Run(name, func(t *testing.T) {
			p := pipeline.Pipeline{Stages: append(passengers().Stages, estimator)}
			first := func(b *engine.Builder) *engine.Dataset { return operators.First(titanic(b), 200) }
			r := trial.Run(t, func(b *engine.Builder) {
				m := p.Fit(first(b))
				engine.Collect(m, "model")
				engine.Collect(p.Apply(first(b), m), "made")
			})
			m, err := pipeline.ModelOf(r, "model")
			require.NoError(t, err)
			later := trial.Run(t, func(b *engine.Builder) {
				engine.Collect(p.Apply(first(b), m.Dataset(b)), "applied")
				engine.Collect(m.Transform(first(b)), "made")
			})
			made, err := arrowbridge.Records(r, "made")
			require.NoError(t, err)
			for _, again := range []string{"applied", "made"} {
				recs, err := arrowbridge.Records(later, again)
				require.NoError(t, err)
				require.Len(t, recs, len(made))
				for i := range recs {
					require.Empty(t, batch.Diff(made[i], recs[i]), again)
				}
			}
			checkScorer(t, m, made[0].Schema().Field(int(made[0].NumCols())-1).Name, r)
		})
	}
}

// checkScorer compares a column of a job's result with the values that a Scorer computes.
func checkScorer(t *testing.T, m *pipeline.Model, column string, r *engine.Result) {
	t.Helper()
	recs, err := arrowbridge.Records(r, "made")
	require.NoError(t, err)
	raw := trial.Run(t, func(b *engine.Builder) { engine.Collect(operators.First(titanic(b), 200), "in") })
	in, err := arrowbridge.Records(raw, "in")
	require.NoError(t, err)
	var names []string
	for _, f := range in[0].Schema().Fields() {
		names = append(names, f.Name)
	}
	s, err := m.Scorer(names...)
	require.NoError(t, err)
	row := s.NewRow()
	var got, want []string
	for _, rec := range in {
		layout := model.NewLayout(names...)
		for _, name := range names {
			_, err := layout.Find(name)
			require.NoError(t, err)
		}
		reader, err := model.NewReader(arrowrows.Schema(rec.Schema()), layout)
		require.NoError(t, err)
		reader.Reset(arrowrows.Batch(rec))
		cells := layout.NewRow()
		for i := range int(rec.NumRows()) {
			reader.Read(i, cells)
			for c := range cells {
				*row.Input(c) = cells[c]
			}
			require.NoError(t, s.Score(row))
			cell := *row.Cell(column)
			text, ok := cell.Category()
			if !ok {
				text = []byte(batch.FormatValue(batch.WrapVectorArray(cell.Values, len(cell.Values)), 0))
			}
			got = append(got, string(text))
		}
	}
	for _, rec := range recs {
		at, err := batch.FindColumn(rec.Schema(), column)
		require.NoError(t, err)
		for i := range int(rec.NumRows()) {
			want = append(want, batch.FormatValue(rec.Column(at), i))
		}
	}
	require.Equal(t, want, got)
}
