package objective_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
)

// altered is an objective that changes its evaluator before the optimiser gets it.
type altered struct {
	objective.Linear
	alter func(e *optim.Evaluator)
}

func (o altered) Open(ctx *comqueue.ComContext) (optim.Evaluator, error) {
	e, err := o.Linear.Open(ctx)
	o.alter(&e)
	return e, err
}

// trainAltered minimises a loss over a table and returns the result.
func trainAltered(t *testing.T, table trial.Table, kind rows.LabelKind, loss objective.Loss, settings optim.Settings, alter func(e *optim.Evaluator)) (found optim.Result) {
	t.Helper()
	r := trial.Run(t, func(b *engine.Builder) {
		checked, err := rows.Check("test", table.Dataset(b), columnsOf(table), kind)
		require.NoError(t, err)
		engine.Collect(optim.Minimize(b, optim.Problem{
			Name: "fit", Init: checked.Init, Objective: altered{objective.Linear{Table: checked, Loss: loss}, alter}, Settings: settings,
			Closer: comqueue.Output(func(ctx *comqueue.ComContext) ([]string, error) {
				text, err := json.Marshal(optim.ResultOf(ctx))
				return []string{string(text)}, err
			}),
		}), "fit")
	})
	text, err := engine.Rows[string](r, "fit")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(text[0]), &found))
	return found
}
