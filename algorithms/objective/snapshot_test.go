package objective_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// trainings returns settings that use everything that the optimisers do with a linear
// objective: cached margins, planes of the latest steps, a change of method, rounds, and
// mini-batches.
func trainings() map[string]optim.Settings {
	return map[string]optim.Settings{
		"LBFGS":      {Method: optim.LBFGS, L2: 0.01, MaxIter: 9},
		"LBFGS free": {Method: optim.LBFGS, MaxIter: 40},
		"OWLQN":      {Method: optim.OWLQN, L1: 0.02, MaxIter: 12, Trials: 3},
		"Newton":     {Method: optim.Newton, Information: true, MaxIter: 12},
		"GD":         {Method: optim.GD, L2: 0.01, MaxIter: 5},
		"Auto":       {MaxIter: 60, Tol: 1e-9},
		"SGD":        {Method: optim.SGD, L2: 0.01, MaxIter: 3, StepTol: 1e-9, Stochastic: optim.Stochastic{Batch: 7, Momentum: 0.5}},
	}
}

// result returns the result of a training over a table as text.
func result(t *testing.T, table trial.Table, kind rows.LabelKind, loss objective.Loss, s optim.Settings, options ...engine.Option) (optim.Result, string) {
	t.Helper()
	r := trial.Run(t, func(b *engine.Builder) {
		checked, err := rows.Check("test", table.Dataset(b), columnsOf(table), kind)
		require.NoError(t, err)
		engine.Collect(optim.Minimize(b, optim.Problem{
			Name: "fit", Init: checked.Init, Objective: objective.Linear{Table: checked, Loss: loss}, Settings: s,
			Closer: comqueue.Output(func(ctx *comqueue.ComContext) ([]string, error) {
				text, err := json.Marshal(optim.ResultOf(ctx))
				return []string{string(text)}, err
			}),
		}), "fit")
	}, options...)
	text, err := engine.Rows[string](r, "fit")
	require.NoError(t, err)
	var found optim.Result
	require.NoError(t, json.Unmarshal([]byte(text[0]), &found))
	return found, trial.Print(t, r, "fit")
}

// TestTrainingsGoOnFromWhatIsKept requires that a training has the same bits if, after each
// superstep, subtasks drop everything that snapshots do not contain. It tests every method,
// with dense and with sparse rows.
func TestTrainingsGoOnFromWhatIsKept(t *testing.T) {
	methods := map[optim.Method]bool{}
	for _, l := range []kind{kinds()[1], kinds()[2], kinds()[10], kinds()[13]} {
		for _, d := range []design{{weighted: true}, {sparse: true}} {
			table := tableFor(l, d)
			for name, s := range trainings() {
				if !testsize.Soak && (l.k > 1 && name != "LBFGS" && name != "Auto" || d.sparse && name == "GD") {
					continue
				}
				t.Run(fmt.Sprintf("%v %v %s", l.loss, d, name), func(t *testing.T) {
					found, want := result(t, table, l.loss.Label(), l.loss, s, engine.Parallelism(2))
					methods[found.Method] = true
					_, kept := result(t, table, l.loss.Label(), l.loss, s, engine.Parallelism(3), engine.CheckState(true))
					require.Equal(t, want, kept)
				})
			}
		}
	}
	require.Len(t, methods, 5)
}

// TestChangesOfMethodGoOnFromWhatIsKept requires the same bits for a training in which Auto
// changes from LBFGS to Newton.
func TestChangesOfMethodGoOnFromWhatIsKept(t *testing.T) {
	const d = 40
	table := trial.Gaussian(4, 300, d)
	for i := range table.N {
		row := table.Row(i)
		for j := 1; j < d; j++ {
			row[j] = row[j-1] + 0.05*row[j]
		}
		table.Label = append(table.Label, float64((i*7+int(4*row[d-1]))&1))
	}
	s := optim.Settings{L2: 1e-6, Tol: 1e-10, MaxIter: 200}
	found, want := result(t, table, rows.ClassLabel, objective.Logistic{}, s, engine.Parallelism(1))
	require.Equal(t, optim.Newton, found.Method)
	require.Greater(t, found.Iterations, 6)
	_, kept := result(t, table, rows.ClassLabel, objective.Logistic{}, s, engine.Parallelism(3), engine.CheckState(true))
	require.Equal(t, want, kept)

	// MaxBytes is enough for the matrix if each subtask has one shard, but not at other
	// parallelisms. The decision must be the same.
	s.MaxBytes = 5 * 8 * (1 + (d + 1) + (d+1)*(d+2)/2)
	found, want = result(t, table, rows.ClassLabel, objective.Logistic{}, s, engine.Parallelism(1))
	require.Equal(t, optim.LBFGS, found.Method)
	_, other := result(t, table, rows.ClassLabel, objective.Logistic{}, s, engine.Parallelism(8))
	require.Equal(t, want, other)
}

// TestRoundsGoOnFromWhatIsKept requires the same bits for rounds over smooth approximations of
// a loss with kinks.
func TestRoundsGoOnFromWhatIsKept(t *testing.T) {
	for _, l := range []kind{kinds()[14], kinds()[15]} {
		table := tableFor(l, design{weighted: true})
		for _, m := range []optim.Method{optim.LBFGS, optim.Newton} {
			s := optim.Settings{Method: m, L2: 0.1, GapTol: 1e-6}
			found, want := result(t, table, l.loss.Label(), l.loss, s, engine.Parallelism(2))
			require.Equal(t, optim.GapClosed, found.Reason)
			_, kept := result(t, table, l.loss.Label(), l.loss, s, engine.Parallelism(3), engine.CheckState(true))
			require.Equal(t, want, kept, "%v: training must have the same bits if subtasks drop what snapshots do not contain", m)
		}
	}
}

// TestSnapshots requires that an evaluator can restore the snapshot of another evaluator, and
// that both evaluators then give the same results and the same snapshot.
func TestSnapshots(t *testing.T) {
	l := kinds()[14]
	table := tableFor(l, design{weighted: true})
	with(t, table, objective.Linear{Loss: l.loss}, func(o opened) {
		shard := o.ctx.Shards().Lo
		other := func() optim.Evaluator {
			e, err := o.linear.Open(o.ctx)
			require.NoError(t, err)
			return e
		}
		n := o.e.Dim
		v, out := parametersFor(n), make([]float64, max(1+n, o.e.Smoothing.BoundLen))
		empty, err := o.e.Snapshot.Append(shard, []byte("before"))
		require.NoError(t, err)
		require.Equal(t, "before", string(empty), "the snapshot must be empty before the shard was read")
		require.NoError(t, other().Snapshot.Restore(shard, nil))

		require.NoError(t, o.e.Margins.Start(shard, v, out[:1+n]))
		for range optim.LatestSteps + 1 {
			require.NoError(t, o.e.Margins.Direction(shard, v, 0.1, out[:1+n]))
			require.NoError(t, o.e.Margins.Advance(shard, 0.1))
		}
		require.NoError(t, o.e.Smoothing.Bound(shard, v, out))
		require.NoError(t, o.e.Smoothing.Refine(shard))
		snapshot, err := o.e.Snapshot.Append(shard, nil)
		require.NoError(t, err)

		e := other()
		require.NoError(t, e.Snapshot.Restore(shard, snapshot))
		again, err := e.Snapshot.Append(shard, nil)
		require.NoError(t, err)
		require.Equal(t, snapshot, again)
		both := func(f func(e optim.Evaluator, out []float64) error) {
			one, two := make([]float64, 64), make([]float64, 64)
			require.NoError(t, f(o.e, one))
			require.NoError(t, f(e, two))
			require.Equal(t, bitsOf(one), bitsOf(two))
		}
		both(func(e optim.Evaluator, out []float64) error { return e.Margins.Direction(shard, v, 0.25, out[:1+n]) })
		both(func(e optim.Evaluator, out []float64) error {
			if err := e.Subspace.Hessian(shard, v, optim.LatestSteps, out); err != nil {
				return err
			}
			return e.Subspace.Slopes(shard, []float64{1, 0.5, 0.25, 2}, []float64{0, 1}, out[32:])
		})

		for _, bad := range [][]byte{{1}, snapshot[:len(snapshot)-1], append(snapshot[:len(snapshot):len(snapshot)], 0), append([]byte{255}, snapshot[1:]...), append([]byte{snapshot[0], 9}, snapshot[2:]...)} {
			require.ErrorContains(t, other().Snapshot.Restore(shard, bad), "a snapshot ")
		}
	})
}
