package pmml

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// train trains stages on the rows of passengers.
func train(t testing.TB, stages ...model.Stage) *pipeline.Model {
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(pipeline.Pipeline{Stages: stages}.Fit(operators.FromSlice(b, trial.Passengers(120))), "model")
	})
	m, err := pipeline.ModelOf(r, "model")
	require.NoError(t, err)
	return m
}

func set(c *model.Cell, v any) {
	switch v := v.(type) {
	case nil:
		c.SetNull()
	case string:
		c.SetText(v)
	case float64:
		c.SetFloat(v)
	case int64:
		c.SetInt(v)
	case bool:
		c.SetBool(v)
	case []float64:
		c.SetDense(v)
	}
}
