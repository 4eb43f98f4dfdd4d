package operators

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/zeebo/xxh3"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// digested is the row that digest makes from a shard.
type digested struct {
	Rows int64
	Hash string
}

// digest replaces the rows of each shard by one row: the number of rows and a hash of their
// text in order. So tests can compare large results within a small memory budget.
func digest(d *engine.Dataset) *engine.Dataset {
	codec, err := batch.NewCodec[digested]()
	if err != nil {
		panic(err)
	}
	return d.Builder().Add(engine.Spec{
		Op:       "Digest",
		Schema:   arrowrows.Schema(codec.Schema()),
		Inputs:   []engine.Port{{From: d}},
		Operator: func() engine.Operator { return &digester{codec: codec} },
	})
}

type digester struct {
	engine.BaseOperator
	codec *batch.Codec[digested]
	rows  int64
	hash  xxh3.Hasher
	text  []byte
}

func (o *digester) Process(_ *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	o.rows += rows.NumRows()
	for i := range int(rows.NumRows()) {
		o.text = o.text[:0]
		for _, col := range rows.Columns() {
			if col.IsNull(i) {
				o.text = append(o.text, "null"...)
			} else {
				o.text = batch.AppendValue(o.text, col, i)
			}
			o.text = append(o.text, " | "...)
		}
		o.hash.Write(o.text)
	}
	return nil
}

func (o *digester) EndShard(c *engine.Context, shard int, out engine.Output) error {
	rec, err := o.codec.Record(c.Allocator, []digested{{o.rows, fmt.Sprintf("%016x", o.hash.Sum64())}})
	if err != nil {
		return err
	}
	defer rec.Release()
	o.rows = 0
	o.hash.Reset()
	return out.Emit(shard, arrowrows.Batch(rec))
}

// requireSameOnDisk runs a job with enough and with very little memory, at several
// parallelisms. It requires that all results have the same bytes, and that rows are written to
// disk if and only if the run has little memory.
func requireSameOnDisk(t *testing.T, build func(b *engine.Builder) *engine.Dataset) {
	t.Helper()
	var want []string
	for _, setting := range onDisk {
		budget, p := setting.budget, setting.p
		dir := t.TempDir()
		result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
			engine.Collect(digest(build(b)), "out")
			return nil
		}), struct{}{}, engine.Shards(testShards), engine.Parallelism(p), engine.Workers(setting.workers), engine.MemoryBudget(budget),
			engine.Allocator(batchtest.Allocator(t)), engine.SpillDir(dir))
		require.NoError(t, err, "budget %d, parallelism %d", budget, p)
		recs, err := recordsOf(result, "out")
		require.NoError(t, err)
		var got []string
		for _, rec := range recs {
			got = append(got, batchtest.Rows(rec)...)
		}
		spilled := rowsSpilled(result)
		result.Release()
		if want == nil {
			want = got
		}
		require.Equal(t, want, got, "budget %d, parallelism %d", budget, p)
		require.Equal(t, budget > 0, spilled > 0, "budget %d, parallelism %d: %d rows on disk; rows must be written to disk if and only if there is a budget", budget, p, spilled)
		left, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, left)
	}
}

// rowsSpilled returns the number of rows that operators have written to disk.
func rowsSpilled(result *engine.Result) (n int64) {
	for _, v := range result.Report.Vertices {
		for _, s := range v.Subtasks {
			for _, o := range s.Operators {
				for _, c := range o.Counters {
					if c.Name == "rows spilled" {
						n += c.Value
					}
				}
			}
		}
	}
	return n
}
