package task

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// benchSource emits the same batch again and again, after some work per row.
type benchSource struct {
	rows arrow.Record
	n    int // batches per shard
	work int // rounds of arithmetic per row
}

func (s *benchSource) Open(*Context) error { return nil }
func (s *benchSource) Close() error        { return nil }

func (s *benchSource) ReadShard(c *Context, shard int, out Output) error {
	for range s.n {
		x := uint64(shard)
		for range s.work * int(s.rows.NumRows()) {
			x = x*6364136223846793005 + 1442695040888963407
		}
		benchSink.Store(x)
		if err := out.Emit(shard, arrowrows.Batch(s.rows)); err != nil {
			return err
		}
	}
	return nil
}

var benchSink atomic.Uint64 // keeps the work from being optimised away

// benchColumns are the columns of benchRows.
var benchColumns = []plan.Column{{Name: "k", Type: "int64"}, {Name: "x", Type: "float64"}, {Name: "y", Type: "float64"}}

// benchRows returns a batch of n rows with a key and two columns of numbers.
func benchRows(n int) arrow.Record {
	b := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{
		{Name: "k", Type: arrow.PrimitiveTypes.Int64},
		{Name: "x", Type: arrow.PrimitiveTypes.Float64},
		{Name: "y", Type: arrow.PrimitiveTypes.Float64},
	}, nil))
	defer b.Release()
	for i := range n {
		b.Field(0).(*array.Int64Builder).Append(int64(i * 7919))
		b.Field(1).(*array.Float64Builder).Append(float64(i))
		b.Field(2).(*array.Float64Builder).Append(float64(-i))
	}
	return b.NewRecord()
}

// benchGraph returns a graph whose nodes all have the columns of benchRows.
func benchGraph(shards int, text string) *testGraph {
	g := parseGraph(shards, text)
	for i := range g.Nodes {
		g.Nodes[i].Schema = benchColumns
	}
	return g
}

// benchRun runs a graph b.N times, each time over about a million rows.
func benchRun(b *testing.B, text string, p, batch, work int) {
	const shards, total = 128, 1 << 20
	rows := benchRows(batch)
	defer rows.Release()
	g := benchGraph(shards, text)
	compiled, err := plan.Compile(g.Graph, p)
	if err != nil {
		b.Fatal(err)
	}
	h := hooks{
		sources:   map[string]func() Source{"source": func() Source { return &benchSource{rows, max(total/shards/batch, 1), work} }},
		operators: map[string]func() Operator{},
	}
	h.sources["empty"] = func() Source { return &benchSource{rows: rows} }
	pass := func() Operator { return &funcOperator{} }
	drop := func() Operator {
		return &funcOperator{process: func(*Context, int, int, arrow.Record, Output) error { return nil }}
	}
	h.operators["pass"], h.operators["drop"] = pass, drop
	dir := b.TempDir()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Run(context.Background(), compiled, g.Graph, g.bindings(h), Env{BatchRows: batch, SpillDir: dir}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*float64(shards*max(total/shards/batch, 1)*batch)/b.Elapsed().Seconds()/1e6, "Mrows/s")
}

// BenchmarkChain measures how rows move through chained operators that do nothing.
func BenchmarkChain(b *testing.B) {
	for _, operators := range []int{1, 2, 4, 8} {
		text := "n0 = source"
		for i := range operators {
			text += fmt.Sprintf("\nn%d = pass n%d", i+1, i)
		}
		text += fmt.Sprintf("\nend = drop n%d", operators)
		for _, batch := range []int{128, 1024, 8192} {
			for _, p := range []int{1, 2} {
				b.Run(fmt.Sprintf("operators=%d/batch=%d/p=%d", operators, batch, p), func(b *testing.B) { benchRun(b, text, p, batch, 0) })
			}
		}
	}
}

// BenchmarkExchange measures how rows move through an exchange. For each row the source does as
// many rounds of arithmetic as the field work says, possibly none.
func BenchmarkExchange(b *testing.B) {
	for _, how := range []string{"forward", "rebalance", "hash", "range", "custom"} {
		// The second input keeps the forward edge from being chained.
		text := fmt.Sprintf("a = source\nnone = empty\nb = pass a/%s none\nc = drop b", how)
		for _, work := range []int{0, 64, 512} {
			for _, p := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/work=%d/p=%d", how, work, p), func(b *testing.B) {
					benchRun(b, text, p, 1024, work)
				})
			}
		}
	}
}

// BenchmarkSuperstep measures an empty superstep of a queue.
func BenchmarkSuperstep(b *testing.B) {
	for _, p := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("subtasks=%d", p), func(b *testing.B) {
			g := queueGraph(8, b.N, true, plan.Compute)
			compiled, err := plan.Compile(g.Graph, p)
			if err != nil {
				b.Fatal(err)
			}
			gang := &testGang{loop: func(int) *testLoop {
				return &testLoop{stages: func(*testLoop) []Stage {
					return []Stage{{Node: 3, Run: func() error { return nil }}}
				}}
			}}
			env := Env{SpillDir: b.TempDir(), Collector: &taps{}}
			b.ReportAllocs()
			b.ResetTimer()
			if _, err := Run(context.Background(), compiled, g.Graph, g.bindings(queueHooks(gang)), env); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkCondBarrier is the baseline of BenchmarkSuperstep. It measures a barrier made of a
// mutex and a condition variable.
func BenchmarkCondBarrier(b *testing.B) {
	for _, p := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("subtasks=%d", p), func(b *testing.B) {
			var mu sync.Mutex
			cond := sync.NewCond(&mu)
			arrived, phase := 0, 0
			var all sync.WaitGroup
			for range p {
				all.Go(func() {
					for range b.N {
						mu.Lock()
						mine := phase
						if arrived++; arrived == p {
							arrived = 0
							phase++
							cond.Broadcast()
						}
						for phase == mine {
							cond.Wait()
						}
						mu.Unlock()
					}
				})
			}
			all.Wait()
		})
	}
}

// BenchmarkSpill shuffles 200 MB of rows with a memory budget of 16 MB.
func BenchmarkSpill(b *testing.B) {
	const shards, batches = 128, 64
	rows := benchRows(1024)
	defer rows.Release()
	g := benchGraph(shards, "a = source\nb = drop a/hash")
	for _, p := range []int{1, 2} {
		b.Run(fmt.Sprintf("p=%d", p), func(b *testing.B) {
			compiled, err := plan.Compile(g.Graph, p)
			if err != nil {
				b.Fatal(err)
			}
			h := hooks{
				sources: map[string]func() Source{"source": func() Source { return &benchSource{rows: rows, n: batches} }},
				operators: map[string]func() Operator{"drop": func() Operator {
					return &funcOperator{process: func(*Context, int, int, arrow.Record, Output) error { return nil }}
				}},
			}
			var report *Report
			for b.Loop() {
				report, err = Run(context.Background(), compiled, g.Graph, g.bindings(h), Env{MemoryBudget: 16 << 20, SpillDir: b.TempDir()})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*shards*batches*1024/b.Elapsed().Seconds()/1e6, "Mrows/s")
			b.ReportMetric(float64(report.Spilled)/1e6, "MB-spilled")
			b.ReportMetric(float64(report.PeakMemory)/1e6, "MB-held")
		})
	}
}
