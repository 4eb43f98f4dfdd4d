package rows

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Joined returns an operator that applies check to each batch of a shard and emits the results
// as one batch, or nothing if there are no rows. Queues that read this batch share it without
// copying it. The argument rows of check is a batch, and first is the number of rows of the
// shard before that batch. The caller of check owns its result. Each subtask needs its own
// operator.
func Joined(check func(c *engine.Context, first int, rows arrow.Record) (arrow.Record, error)) engine.Operator {
	return &joiner{check: check}
}

// joiner is the operator that Joined returns.
type joiner struct {
	engine.BaseOperator
	check   func(c *engine.Context, first int, rows arrow.Record) (arrow.Record, error)
	seen    int            // rows of the current shard so far
	checked []arrow.Record // results of check for the current shard, owned by the operator
}

func (o *joiner) Process(c *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	checked, err := o.check(c, o.seen, rows)
	if err != nil {
		return err
	}
	if checked.NumRows() > 0 {
		o.checked = append(o.checked, checked)
	} else {
		checked.Release()
	}
	o.seen += int(rows.NumRows())
	return nil
}

// EndShard emits the shard's rows as one batch.
func (o *joiner) EndShard(c *engine.Context, shard int, out engine.Output) error {
	o.seen = 0
	if len(o.checked) == 0 {
		return nil
	}
	whole := o.checked[0]
	if len(o.checked) > 1 {
		joined, err := batch.Concat(c.RowAllocator, o.checked)
		if err != nil {
			return fmt.Errorf("%w; cut the data into more shards", err)
		}
		o.drop()
		whole = joined
	}
	o.checked = o.checked[:0]
	defer whole.Release()
	return out.Emit(shard, arrowrows.Batch(whole))
}

func (o *joiner) Close() error {
	o.drop()
	return nil
}

func (o *joiner) drop() {
	for _, rows := range o.checked {
		rows.Release()
	}
	o.checked = o.checked[:0]
}
