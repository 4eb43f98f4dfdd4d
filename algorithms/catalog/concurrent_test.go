package catalog_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/catalog"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

// TestEveryModelIsUsedConcurrently requires that a model that three subtasks trained gives the
// same results in four goroutines at once. The model is newly decoded, so the first rows of the
// goroutines run its lazy initialisation. Under the race detector, the test covers every
// estimator.
func TestEveryModelIsUsedConcurrently(t *testing.T) {
	for name, e := range estimators {
		t.Run(name, func(t *testing.T) {
			rows := table(24, 4, func(*trial.Table) {})
			r := trial.Run(t, func(b *engine.Builder) {
				engine.Collect(e.stage("features").Fit(rows.Dataset(b)), "model")
			}, engine.Parallelism(3))
			file, err := model.Encoded(r, "model")
			require.NoError(t, err)
			m, err := catalog.Decode(file)
			require.NoError(t, err)

			compute := func() (texts []string, err error) {
				layout := model.NewLayout("features", "weight")
				step, err := catalog.Bind(m, layout)
				if err != nil {
					return nil, err
				}
				for i := range rows.N {
					cells := layout.NewRow()
					cells[0].SetDense(rows.Row(i))
					cells[1].SetFloat(rows.Weight[i])
					if err := step(cells); err != nil {
						return nil, err
					}
					texts = append(texts, fmt.Sprint(cells[2:]))
				}
				return texts, nil
			}
			var all sync.WaitGroup
			got, errs := make([][]string, 4), make([]error, 4)
			for g := range got {
				all.Go(func() { got[g], errs[g] = compute() })
			}
			all.Wait()
			for g := range got {
				require.NoError(t, errs[g])
				require.Len(t, got[g], rows.N)
				require.Equal(t, got[0], got[g])
			}
		})
	}
}
