//go:build linux

package catalog_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// TestEveryEstimatorTrainsBeyondTheBudget requires that every estimator trains the same model
// if its rows, dense or sparse, exceed the memory budget and are therefore kept in files.
func TestEveryEstimatorTrainsBeyondTheBudget(t *testing.T) {
	for name, e := range estimators {
		for _, sparse := range []bool{false, true} {
			if sparse && (e.dense || testsize.Few) {
				continue
			}
			t.Run(fmt.Sprintf("%s/sparse=%t", name, sparse), func(t *testing.T) {
				rows := table(testsize.Raced(3000, 1000), 24, func(t *trial.Table) { t.Sparse = sparse })
				train := func(options ...engine.Option) []byte {
					r := trial.Run(t, func(b *engine.Builder) {
						engine.Collect(e.stage("features").Fit(rows.Dataset(b)), "model")
					}, append(options, engine.Parallelism(2))...)
					file, err := model.Encoded(r, "model")
					require.NoError(t, err)
					return file
				}
				logged := &strings.Builder{}
				logger := hclog.New(&hclog.LoggerOptions{Output: logged, Level: hclog.Info})
				require.Equal(t, train(), train(engine.MemoryBudget(int64(rows.N*rows.D*8)/2), engine.Logger(logger)))
				require.Contains(t, logged.String(), "keeping rows of the queue in files")
			})
		}
	}
}
