package trial_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
)

func TestSameBitsOfATable(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		table := trial.Wild(200, 3)
		table.Sparse = sparse
		trial.SameBits(t, func(b *engine.Builder) {
			rows := table.Dataset(b)
			engine.Collect(rows, "rows")
			engine.Collect(kmeans.Train(rows, kmeans.Params{VectorCol: "features", WeightCol: "weight", K: 3, MaxIter: 3}), "model")
		}, "kmeans")
	}
}

func TestPrintHasEveryRow(t *testing.T) {
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(trial.TableOf([]float64{1, 2}, []float64{0.5, 3}, []float64{-1, 0}).Dataset(b), "rows")
	})
	require.Equal(t, "rows\n0\t[0.5 3]\t1\t\n1\t[-1 0]\t2\t\n", trial.Print(t, r))
	require.Equal(t, 1, strings.Count(trial.Print(t, r), "rows"))
}

func TestFailsTellsTheError(t *testing.T) {
	err := trial.Fails(t, func(b *engine.Builder) { b.Errorf("the reason") }, "the reason")
	require.Error(t, err)
}
