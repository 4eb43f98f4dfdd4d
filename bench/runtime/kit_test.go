package runtime

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// row is a row of the benchmarks: a key and two numbers.
type row struct {
	Key  int64
	X, Y float64
}

const (
	batchRows  = engine.DefaultBatchRows
	shardCount = engine.DefaultShards
)

var rowSchema = arrow.NewSchema([]arrow.Field{
	{Name: "key", Type: arrow.PrimitiveTypes.Int64},
	{Name: "x", Type: arrow.PrimitiveTypes.Float64},
	{Name: "y", Type: arrow.PrimitiveTypes.Float64},
}, nil)

// someRows returns a batch in which every key is distinct, and the same rows as structs. The
// batch is on the Go heap and needs no release.
func someRows() (arrow.Record, []row) {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), rowSchema)
	defer b.Release()
	rows := make([]row, batchRows)
	for i := range rows {
		rows[i] = row{int64(i) * 7919, float64(i), -float64(i) / 2}
		b.Field(0).(*array.Int64Builder).Append(rows[i].Key)
		b.Field(1).(*array.Float64Builder).Append(rows[i].X)
		b.Field(2).(*array.Float64Builder).Append(rows[i].Y)
	}
	return b.NewRecord(), rows
}

// readySource emits the same batch repeatedly, each time after some arithmetic for each row.
// The benchmark then measures only what happens to the rows after the source.
type readySource struct {
	rows    arrow.Record
	batches int // number of batches per shard
	work    int // number of steps of burnCPU per row
}

func (*readySource) Open(*engine.Context) error { return nil }
func (*readySource) Close() error               { return nil }

func (s *readySource) ReadShard(_ *engine.Context, shard int, out engine.Output) error {
	for range s.batches {
		burnCPU(s.work * int(s.rows.NumRows()))
		if err := out.Emit(shard, arrowrows.Batch(s.rows)); err != nil {
			return err
		}
	}
	return nil
}

// burnCPU keeps a processor busy with a chain of dependent multiplications. There is one per
// step, and it takes about 1 to 2 ns.
func burnCPU(steps int) {
	x := uint64(steps)
	for range steps {
		x = x*6364136223846793005 + 1442695040888963407
	}
	sink.Store(x)
}

// sink receives results, so that the compiler does not remove their computation.
var sink atomic.Uint64

// ready adds a source that emits the given batch, batches times in each shard.
func ready(b *engine.Builder, rows arrow.Record, batches, work int) *engine.Dataset {
	return b.Add(engine.Spec{Op: "Ready", Schema: arrowrows.Schema(rows.Schema()), Source: func() engine.Source {
		return &readySource{rows, batches, work}
	}})
}

// pass is an operator that emits its input unchanged.
type pass struct{}

func (pass) Open(*engine.Context) error { return nil }
func (pass) Process(_ *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	return out.Emit(shard, arrowrows.Batch(rows))
}
func (pass) EndShard(*engine.Context, int, engine.Output) error { return nil }
func (pass) Finish(*engine.Context, engine.Output) error        { return nil }
func (pass) Close() error                                       { return nil }

// dropped is a sink that counts its rows and discards them.
type dropped struct{ pass }

func (dropped) Process(c *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	c.Count(droppedRows, rows.NumRows())
	return nil
}

const droppedRows = "dropped"

// drop adds a dropped sink.
func drop(d *engine.Dataset) {
	d.Builder().Add(engine.Spec{Op: "Drop", Inputs: []engine.Port{{From: d}}, Operator: func() engine.Operator { return dropped{} }})
}

// measureRun runs a job and returns the duration of the run. It requires that drop received the
// given number of rows.
func measureRun(b *testing.B, rows int64, build func(*engine.Builder), opts ...engine.Option) time.Duration {
	b.Helper()
	job := engine.Anonymous(func(eb *engine.Builder) error {
		build(eb)
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{}, append([]engine.Option{engine.SpillDir(b.TempDir())}, opts...)...)
	if err != nil {
		b.Fatal(err)
	}
	defer result.Release()
	if got := rowsDropped(result); got != rows {
		b.Fatalf("%d rows came out, want %d", got, rows)
	}
	return result.Report.Elapsed
}

// rowsDropped returns the number of rows that all dropped sinks of a run received.
func rowsDropped(r *engine.Result) (n int64) {
	for _, v := range r.Report.Vertices {
		for _, s := range v.Subtasks {
			for _, o := range s.Operators {
				for _, c := range o.Counters {
					if c.Name == droppedRows {
						n += c.Value
					}
				}
			}
		}
	}
	return n
}

// since calls f and returns the duration of the call.
func since(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}

// pairs has the times of the measured code and of its yardstick, which run in turn.
type pairs struct {
	took, baseline []time.Duration
	ratios         []float64 // took / baseline of each pair
}

func (p *pairs) add(took, yard time.Duration) {
	p.took, p.baseline = append(p.took, took), append(p.baseline, yard)
	p.ratios = append(p.ratios, float64(took)/float64(yard))
}

// report reports the medians: the rows per second, and, if there is a yardstick, the rows per
// second of the yardstick and the ratio of the times.
func (p *pairs) report(b *testing.B, rows int64, yardstick string) {
	rate := func(d time.Duration) float64 { return float64(rows) / d.Seconds() / 1e6 }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(rate(median(p.took)), "Mrows/s")
	if len(p.baseline) == 0 {
		return
	}
	b.ReportMetric(rate(median(p.baseline)), "Mrows/s-"+yardstick)
	b.ReportMetric(median(p.ratios), "ratio")
}
