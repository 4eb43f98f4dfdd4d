package trial

import (
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Table has rows of features, with or without labels, weights and offsets.
type Table struct {
	N, D   int
	X      []float64 // row-major N×D
	Label  []float64 // labels that are numbers; nil if there are none
	Words  []string  // labels that are text; nil if there are none
	Weight []float64 // nil if there are no weights
	Offset []float64 // nil if there are no offsets
	Sparse bool      // whether Dataset stores the features as sparse[D], without the zeros
}

// TableOf returns a table of the given rows, with the given labels.
func TableOf(label []float64, rows ...[]float64) Table {
	t := Table{N: len(rows), Label: label}
	for _, r := range rows {
		t.D = len(r)
		t.X = append(t.X, r...)
	}
	return t
}

// Row returns the features of row i.
func (t Table) Row(i int) []float64 { return t.X[i*t.D : (i+1)*t.D] }

// Wild returns n rows of d features with magnitudes from 1e-8 to 1e16, so that rounded sums
// depend on the order of additions. Labels are 0 and 1, and weights are below 3.
func Wild(n, d int) Table {
	t := Table{N: n, D: d}
	r := sharding.NewRandom(7, "wild", 0, 0)
	for range n {
		for range d {
			magnitude := kernel.Pow(10, float64(24*r.Float64())-8)
			t.X = append(t.X, magnitude*(float64(2*r.Float64())-1))
		}
		t.Label = append(t.Label, math.Floor(2*r.Float64()))
		t.Weight = append(t.Weight, 3*r.Float64())
	}
	return t
}

// Gaussian returns n rows of d features without labels, drawn from the standard normal
// distribution by the polar method.
func Gaussian(seed uint64, n, d int) Table {
	t := Table{N: n, D: d, X: make([]float64, 0, n*d)}
	r := sharding.NewRandom(seed, "gaussian", 0, 0)
	for len(t.X) < n*d {
		u, v := float64(2*r.Float64())-1, float64(2*r.Float64())-1
		s := float64(u*u) + float64(v*v)
		if s == 0 || s >= 1 {
			continue
		}
		f := math.Sqrt(-2 * kernel.Log(s) / s)
		t.X = append(t.X, u*f, v*f)
	}
	t.X = t.X[:n*d]
	return t
}

// Dataset adds the table to a job, with the columns "id" and "features", and with the columns
// "label", "weight" and "offset" if the table has them.
func (t Table) Dataset(b *engine.Builder) *engine.Dataset {
	return arrowbridge.FromRecords(b, []arrow.Record{t.Record()})
}

// Record returns the table as a batch in garbage-collected memory, which need not be released.
func (t Table) Record() arrow.Record {
	mem := memory.NewGoAllocator()
	var fields []arrow.Field
	var columns []arrow.Array
	add := func(name string, column arrow.Array) {
		fields = append(fields, arrow.Field{Name: name, Type: column.DataType()})
		columns = append(columns, column)
	}
	ids := array.NewInt64Builder(mem)
	for i := range t.N {
		ids.Append(int64(i))
	}
	add("id", ids.NewArray())
	add("features", t.features(mem))
	for _, c := range []struct {
		name   string
		values []float64
	}{{"label", t.Label}, {"weight", t.Weight}, {"offset", t.Offset}} {
		if c.values != nil {
			numbers := array.NewFloat64Builder(mem)
			numbers.AppendValues(c.values, nil)
			add(c.name, numbers.NewArray())
		}
	}
	if t.Words != nil {
		words := array.NewStringBuilder(mem)
		words.AppendValues(t.Words, nil)
		add("label", words.NewArray())
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), columns, int64(t.N))
}

// features returns the features as a column of vectors.
func (t Table) features(mem memory.Allocator) arrow.Array {
	if !t.Sparse {
		return batch.NewVectorArray(mem, t.X, t.D)
	}
	csr := batch.CSR{Size: t.D, Indptr: []int32{0}}
	for i := range t.N {
		for j, v := range t.Row(i) {
			if v != 0 {
				csr.Indices, csr.Values = append(csr.Indices, int32(j)), append(csr.Values, v)
			}
		}
		csr.Indptr = append(csr.Indptr, int32(len(csr.Indices)))
	}
	column, err := batch.NewSparseArray(mem, csr)
	if err != nil {
		panic(err)
	}
	return column
}
