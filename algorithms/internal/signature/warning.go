package signature

import (
	"encoding/json"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
)

// divergingRuns is the name of a counter. It counts trainings whose parameters grew without
// bound.
const divergingRuns = "warnings: training diverges, no optimum"

// WarnOfDivergence returns the dataset made, which has the models of a training, unchanged. It
// counts a warning for each model whose summary says that training ended because parameters
// grew without bound. diverging is the value of Reason in such summaries.
func WarnOfDivergence(op string, made *engine.Dataset, diverging string) *engine.Dataset {
	if made.Poisoned() {
		return made
	}
	return operators.MapBatch(made, engine.Schema{}, func(c *engine.Context, in engine.Batch) (engine.Batch, error) {
		row := arrowrows.Record(in)
		for i := range int(row.NumRows()) {
			var file struct {
				Summary struct{ Reason string }
			}
			if err := json.Unmarshal([]byte(row.Column(0).(*array.String).Value(i)), &file); err != nil {
				return engine.Batch{}, fmt.Errorf("%s: %w", op, err)
			}
			if file.Summary.Reason == diverging {
				c.Count(divergingRuns, 1)
			}
		}
		row.Retain()
		return arrowrows.Batch(row), nil
	})
}
