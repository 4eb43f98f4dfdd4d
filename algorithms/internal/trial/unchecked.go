package trial

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
)

// Unchecked adds a dataset of one batch. The batch is not checked, like a batch that a user's
// operator emits. It must remain valid while the job runs.
func Unchecked(b *engine.Builder, rows arrow.Record) *engine.Dataset {
	return b.Add(engine.Spec{
		Op: "Unchecked", Schema: arrowrows.Schema(rows.Schema()), Inputs: []engine.Port{{From: operators.FromSlice(b, []int64{1})}},
		Operator: func() engine.Operator { return unchecked{rows: rows} },
	})
}

// unchecked emits its batch once for each batch that it receives.
type unchecked struct {
	engine.BaseOperator
	rows arrow.Record
}

func (u unchecked) Process(_ *engine.Context, _, shard int, _ engine.Batch, out engine.Output) error {
	return out.Emit(shard, arrowrows.Batch(u.rows))
}
