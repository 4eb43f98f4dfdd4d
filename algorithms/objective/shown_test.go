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

// trainShown minimises a loss over a table and returns what came of it. The optimiser sees what
// shown makes of the objective, which may hide methods of it.
func trainShown(t *testing.T, table trial.Table, kind rows.LabelKind, loss objective.Loss, settings optim.Settings, shown func(objective.Linear) optim.Objective) (found optim.Result) {
	t.Helper()
	r := trial.Run(t, func(b *engine.Builder) {
		checked, err := rows.Check("test", table.Dataset(b), columnsOf(table), kind)
		require.NoError(t, err)
		engine.Collect(optim.Minimize(b, optim.Problem{
			Name: "fit", Init: checked.Init, Objective: shown(objective.Linear{Table: checked, Loss: loss}), Settings: settings,
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
