package pipeline_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/engine"
)

// BenchmarkScorer measures a Scorer with six stages on one passenger.
func BenchmarkScorer(b *testing.B) {
	job := engine.Anonymous(func(b *engine.Builder) error {
		engine.Collect(passengers().Fit(titanic(b)), "model")
		return nil
	})
	r, err := engine.Run(context.Background(), job, struct{}{})
	require.NoError(b, err)
	defer r.Release()
	m, err := pipeline.ModelOf(r, "model")
	require.NoError(b, err)
	s, err := m.Scorer("age", "fare", "sibsp", "parch", "sex", "embarked", "class")
	require.NoError(b, err)
	row := s.NewRow()
	b.ReportAllocs()
	for b.Loop() {
		row.Input(0).SetFloat(22)
		row.Input(1).SetFloat(7.25)
		row.Input(2).SetInt(1)
		row.Input(3).SetInt(0)
		row.Input(4).SetText("male")
		row.Input(5).SetText("S")
		row.Input(6).SetText("Third")
		if err := s.Score(row); err != nil {
			b.Fatal(err)
		}
	}
}
