package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/bench/internal/rawrows"
)

// TestLoop requires that the loop reaches the same optimum as Superstep, with the same number
// of iterations and reads. The objective that the loop reports must equal the objective
// computed from its coefficients.
func TestLoop(t *testing.T) {
	for name, s := range map[string]shape{
		"dense":  {Layout: rawrows.Layout{Rows: 3000, Features: 12}},
		"sparse": {Layout: rawrows.Layout{Rows: 6000, Features: 90, PerRow: 7}},
		"even":   {Layout: rawrows.Layout{Rows: 6000, Features: 90, PerRow: 7}, Even: true},
	} {
		dir := t.TempDir()
		require.NoError(t, generate(dir, s, 3))
		l2 := 1 / float64(s.Rows)
		ours, err := task{Dir: dir, Shape: s, L2: l2, Parallel: 1, Method: optim.LBFGS}.run()
		require.NoError(t, err)
		loop, err := loopTask{Dir: dir, Shape: s, L2: l2}.run()
		require.NoError(t, err)
		least := optimum([]*line{{Rounds: []outcome{ours}}, {Rounds: []outcome{loop}}})
		for _, o := range []outcome{ours, loop} {
			require.InEpsilon(t, least, o.Trace[len(o.Trace)-1].Objective, 1e-9, name)
			require.InDelta(t, float64(len(o.Trace)), o.Reads, 1, name)
		}
		_, want, ok := ours.until(least)
		require.True(t, ok)
		_, steps, ok := loop.until(least)
		require.True(t, ok)
		require.InDelta(t, want, steps, 1, name)

		rows, err := readRows(dir, s.Layout)
		require.NoError(t, err)
		l, err := newLoop(rows, l2)
		require.NoError(t, err)
		var told float64
		l.minimise(func(value float64) bool {
			require.InEpsilon(t, rows.objective(l.coefficients(l.v), false), value, 1e-12, name)
			told = value
			return l.reads < 5
		})
		require.InEpsilon(t, loop.Trace[4].Objective, told, 1e-12)
		rows.Labels[7] = 2
		_, err = newLoop(rows, l2)
		require.ErrorContains(t, err, "want two classes")
	}
}
