package operators

import (
	"strconv"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// First returns the first n rows in the order of the dataset, or all rows if the dataset has
// fewer than n. Rows stay in their shards.
func First(d *engine.Dataset, n int64) *engine.Dataset {
	const op = "First"
	b := builderOf(op, d)
	if n < 0 {
		b.Errorf("%s: %d rows: want at least 0", op, n)
		return b.Poisoned(op)
	}
	return b.Add(engine.Spec{
		Op:       op,
		Attrs:    []engine.Attr{{Key: "rows", Value: strconv.FormatInt(n, 10)}},
		Schema:   d.Schema(),
		Inputs:   []engine.Port{{From: firstOfShards(op, d, n), Use: keeps(d)}},
		Single:   true,
		Operator: func() engine.Operator { return &limiter{n: n, left: n} },
	})
}

// firstOfShards returns the first n rows of each shard. Other rows cannot be among the first n
// rows of the dataset, so they are not sent. op is the function that the plan shows for the
// added operator.
func firstOfShards(op string, d *engine.Dataset, n int64) *engine.Dataset {
	return addPart(op, d.Builder(), engine.Spec{
		Op:       "FirstOfShards",
		Attrs:    []engine.Attr{{Key: "rows", Value: strconv.FormatInt(n, 10)}},
		Schema:   d.Schema(),
		Inputs:   []engine.Port{{From: d, Use: keeps(d)}},
		Operator: func() engine.Operator { return &limiter{n: n, left: n, perShard: true} },
	})
}

// limiter emits n rows and drops the others.
type limiter struct {
	engine.BaseOperator
	n, left  int64
	perShard bool // n rows of each shard are emitted; otherwise n rows of all shards together
}

func (o *limiter) Process(_ *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	n := min(rows.NumRows(), o.left)
	o.left -= n
	return emitSlice(shard, rows, 0, int(n), out)
}

func (o *limiter) EndShard(*engine.Context, int, engine.Output) error {
	if o.perShard {
		o.left = o.n
	}
	return nil
}
