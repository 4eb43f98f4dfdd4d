//go:build linux

package catalog_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// TestEveryEstimatorTrainsBeyondTheBudget: rows that a memory budget does not hold are kept in
// files, and every estimator makes the same model of them.
func TestEveryEstimatorTrainsBeyondTheBudget(t *testing.T) {
	rows := table(3000, 24, func(*trial.Table) {})
	for name, e := range estimators {
		t.Run(name, func(t *testing.T) {
			train := func(options ...engine.Option) []byte {
				r := trial.Run(t, func(b *engine.Builder) {
					operators.Collect(b, "model", e.stage("features").Fit(rows.Dataset(b)))
				}, append(options, engine.Parallelism(2))...)
				file, err := model.Encoded(r, "model")
				require.NoError(t, err)
				return file
			}
			budget := engine.MemoryBudget(int64(rows.N*rows.D*8) / 2)
			require.Equal(t, train(), train(budget))
		})
	}
}
