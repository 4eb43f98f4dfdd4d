package operators

import (
	"testing"

	"github.com/superstep-ml/superstep/engine"
)

// sideEmitter emits the batches of its side input at the end of shard 0.
type sideEmitter struct{ engine.BaseOperator }

func (*sideEmitter) Process(*engine.Context, int, int, engine.Batch, engine.Output) error { return nil }

func (*sideEmitter) EndShard(c *engine.Context, shard int, out engine.Output) error {
	if shard > 0 {
		return nil
	}
	for _, rows := range c.Side(1) {
		if err := out.Emit(0, rows); err != nil {
			return err
		}
	}
	return nil
}

// TestSideInputsComeInOrder requires that the rows of a side input are ordered by shard, and
// within a shard in their order, at every parallelism and whichever source ends first.
func TestSideInputsComeInOrder(t *testing.T) {
	const n = 100
	var want []string
	for i := range n {
		want = append(want, line(0, n-i))
	}
	requireRows(t, "value int64", want, func(b *engine.Builder) *engine.Dataset {
		side := Map(Range(b, 0, n), func(v struct {
			Value int64 `column:"value"`
		}) struct {
			Value int64 `column:"value"`
		} {
			v.Value = n - v.Value
			return v
		})
		return b.Add(engine.Spec{
			Op: "ShowSide", Schema: side.Schema(),
			Inputs:   []engine.Port{{From: Range(b, 0, 3)}, {From: side, Side: true}},
			Operator: func() engine.Operator { return &sideEmitter{} },
		})
	})
}
