package precopy

import (
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// wholeShards is a Rows whose shards are all the same batch.
type wholeShards struct {
	store
	rows arrow.Record
}

func (w *wholeShards) Offer(string, int) []task.PortSize {
	return []task.PortSize{{Rows: w.rows.NumRows(), Bytes: batch.Size(w.rows)}}
}

func (w *wholeShards) Give(_ string, _, _ int, give func(rows columnar.Batch) error) error {
	return give(arrowrows.Batch(w.rows))
}

// BenchmarkCopy copies 32 shards of 8 MiB from one process to another, over TCP within the machine.
func BenchmarkCopy(b *testing.B) {
	const shards, numbers = 32, 1 << 20
	g := newGroup(b, 2, nil)
	builder := array.NewFloat64Builder(memory.DefaultAllocator)
	for i := range numbers {
		builder.Append(float64(i))
	}
	column := builder.NewArray()
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float64}}, nil)
	all := &wholeShards{rows: array.NewRecord(schema, []arrow.Array{column}, numbers)}
	g.nodes[1].cfg.Rows = all
	o := Order{To: g.process(0), Within: time.Minute, Takes: []Take{{Queue: "q", From: g.process(1)}}}
	for shard := range shards {
		o.Takes[0].Shards = append(o.Takes[0].Shards, shard)
	}
	b.SetBytes(shards * batch.Size(all.rows))
	b.ReportAllocs()
	for b.Loop() {
		out := g.nodes[0].Direct(b.Context(), []Order{o})
		require.Equal(b, shards, out[0].Shards, out[0].Because)
		g.stores[0].DropAhead(func(string, int) bool { return false })
	}
}
