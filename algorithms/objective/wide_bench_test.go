package objective_test

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// wideRecord returns n sparse rows, each with at most the given number of entries, and with the
// classes 1 and 2, which a hyperplane separates. The rows have apart·d columns, of which only
// multiples of apart occur.
func wideRecord(n, d, entries, apart int) arrow.Record {
	mem := memory.NewGoAllocator()
	csr := batch.CSR{Size: apart * d, Indptr: []int32{0}}
	labels := array.NewFloat64Builder(mem)
	r := sharding.NewRandom(5, "wide", 0, 0)
	columns := make([]int32, 0, entries)
	for range n {
		columns = columns[:0]
		for range entries {
			columns = append(columns, int32(r.IntN(d)))
		}
		slices.Sort(columns)
		columns = slices.Compact(columns)
		var m float64
		for _, j := range columns {
			x := 0.5 + r.Float64()
			csr.Indices, csr.Values = append(csr.Indices, j*int32(apart)), append(csr.Values, x)
			m += x * float64(j%5-2)
		}
		csr.Indptr = append(csr.Indptr, int32(len(csr.Indices)))
		labels.Append(1.5 + math.Copysign(0.5, m))
	}
	column, err := batch.NewSparseArray(mem, csr)
	if err != nil {
		panic(err)
	}
	y := labels.NewArray()
	return array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "features", Type: column.DataType()}, {Name: "label", Type: y.DataType()}}, nil),
		[]arrow.Array{column, y}, int64(n))
}

// BenchmarkWide trains on eight subtasks over 20,000,000 declared features, of which 2,000,000
// occur. It reports the number of reads, the seconds for the facts and for the minimisation,
// the memory that the Go runtime has obtained from the system, and the megabytes that are sent.
func BenchmarkWide(b *testing.B) {
	record := wideRecord(400_000, 2_000_000, 30, 10)
	data := func(b *engine.Builder) *engine.Dataset { return arrowbridge.FromRecords(b, []arrow.Record{record}) }
	for b.Loop() {
		runtime.GC()
		f, r := fitOf(b, data, rows.Columns{Vector: "features", Label: "label"}, objective.Linear{Loss: objective.Logistic{}},
			optim.Settings{Method: optim.LBFGS, L2: 1e-6, MaxIter: 5, Tol: -1},
			engine.Parallelism(8), engine.Shards(128), engine.CheckBroadcasts(false))
		require.True(b, len(f.Weights) > 1_900_000)
		b.ReportMetric(f.Reads, "reads")
		b.ReportMetric(r.Queue("test facts").Elapsed.Seconds(), "s-facts")
		b.ReportMetric(r.Queue("fit").Elapsed.Seconds(), "s-fit")
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		b.ReportMetric(float64(m.Sys)/(1<<30), "GiB-heap")
		var gradients, all int64
		for _, s := range r.Queue("fit").Stages {
			all += s.Bytes
			if strings.HasSuffix(s.Name, `"optim gradient"`) {
				gradients += s.Bytes
			}
		}
		b.ReportMetric(float64(gradients)/f.Reads/1e6, "MB-gradient/read")
		b.ReportMetric(float64(all)/float64(f.Iterations+1)/1e6, "MB/superstep")
	}
}
