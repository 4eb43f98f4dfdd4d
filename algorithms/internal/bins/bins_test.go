package bins_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
	"github.com/superstep-ml/superstep/shared/sharding"
)

var (
	nan = math.NaN()
	inf = math.Inf(1)
)

// columnsRecord returns a batch with the given columns: slices of numbers, bools, strings or
// vectors. In strings, "-" is null; in vectors, nil is null.
func columnsRecord(names []string, columns ...any) arrow.Record {
	mem := memory.NewGoAllocator()
	var fields []arrow.Field
	var arrays []arrow.Array
	n := 0
	for i, c := range columns {
		var a arrow.Array
		switch c := c.(type) {
		case []float64:
			b := array.NewFloat64Builder(mem)
			b.AppendValues(c, nil)
			a = b.NewArray()
		case []float32:
			b := array.NewFloat32Builder(mem)
			b.AppendValues(c, nil)
			a = b.NewArray()
		case []int64:
			b := array.NewInt64Builder(mem)
			b.AppendValues(c, nil)
			a = b.NewArray()
		case []bool:
			b := array.NewBooleanBuilder(mem)
			b.AppendValues(c, nil)
			a = b.NewArray()
		case []string: // "-" is null
			b := array.NewStringBuilder(mem)
			for _, s := range c {
				if s == "-" {
					b.AppendNull()
				} else {
					b.Append(s)
				}
			}
			a = b.NewArray()
		case [][]float64: // vectors, possibly of different lengths; nil is null
			b := array.NewListBuilderWithField(mem, arrow.Field{Name: "item", Type: arrow.PrimitiveTypes.Float64})
			for _, v := range c {
				b.Append(v != nil)
				b.ValueBuilder().(*array.Float64Builder).AppendValues(v, nil)
			}
			a = b.NewArray()
		}
		n = a.Len()
		fields = append(fields, arrow.Field{Name: names[i], Type: a.DataType(), Nullable: true})
		arrays = append(arrays, a)
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), arrays, int64(n))
}

func dataset(rec arrow.Record) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset { return arrowbridge.FromRecords(b, []arrow.Record{rec}) }
}

// requireRouted requires that, at every cut, the value x goes to the same side by its bin, as
// in training, and by comparison with the threshold, as in prediction.
func requireRouted(t *testing.T, f *bins.Feature, bin int, x float64) {
	t.Helper()
	if math.IsNaN(x) {
		require.Equal(t, f.Bins, bin, "%s: NaN must be in the bin of missing values", f.Name)
		return
	}
	for b, cut := range f.Cuts {
		if left := float32(x) < cut; left != (bin <= b) || bin >= f.Bins || math.IsInf(float64(cut), 0) {
			require.Failf(t, "bin and threshold disagree", "%s: %v is in bin %d; cut %d is %v", f.Name, x, bin, b, cut)
		}
	}
}

func TestRowsGoAsTheirBinsDo(t *testing.T) {
	wild := trial.Wild(600, 5)
	r := sharding.NewRandom(4, "holes", 0, 0)
	for i := range wild.X {
		switch u := r.Float64(); {
		case u < 0.05:
			wild.X[i] = nan
		case u < 0.07:
			wild.X[i] = inf
		case u < 0.09:
			wild.X[i] = -inf
		case u < 0.1:
			wild.X[i] = 1e300 // beyond the range of float32
		case u < 0.2:
			wild.X[i] = 0
		case u < 0.22:
			wild.X[i] = math.Copysign(0, -1)
		case i%5 == 4:
			wild.X[i] = math.Floor(9 * r.Float64()) // few values
		}
	}
	for number, c := range []struct {
		name string
		o    bins.Options
		data func(b *engine.Builder) *engine.Dataset
		of   func(x float64) float64 // the value that binning must use for x; nil means x itself
	}{
		{name: "dense", data: wild.Dataset},
		{name: "few bins", data: wild.Dataset, o: bins.Options{MaxBins: 4}},
		{name: "vectors of any length", data: dataset(ragged(wild))},
		{name: "float32", data: dataset(singles(wild))},
		{name: "sparse", data: sparse(wild), of: func(x float64) float64 {
			if x == 0 {
				return nan
			}
			return x
		}},
		{name: "sparse with zeros", data: sparse(wild), o: bins.Options{AbsentIsZero: true}},
		{name: "sparse without bundles", data: sparse(wild), o: bins.Options{AbsentIsZero: true, NoBundling: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := look(t, c.data, bins.Columns{Vector: "features"}, bins.NoLabel, c.o, engine.BatchRows([]int{1024, 7}[number%2]), engine.Parallelism(3))
			require.Len(t, s.Rows, wild.N)
			used := map[int]bool{}
			for i, row := range s.Rows {
				for j, x := range wild.Row(i) {
					if c.of != nil {
						x = c.of(x)
					}
					requireRouted(t, &s.Layout.Features[j], row.Bins[j], x)
					used[row.Bins[j]] = true
				}
			}
			most := c.o.MaxBins
			if most == 0 {
				most = 255
			}
			require.Greater(t, len(used), most*3/5)
			for j := range s.Layout.Features {
				missing := int64(0)
				for _, row := range s.Rows {
					if row.Bins[j] == s.Layout.Features[j].Bins {
						missing++
					}
				}
				require.Equal(t, missing, s.Facts.Missing[j])
			}
		})
	}
}

// ragged returns the features of a table as vectors whose type has no length.
func ragged(t trial.Table) arrow.Record {
	var all [][]float64
	for i := range t.N {
		all = append(all, t.Row(i))
	}
	return columnsRecord([]string{"features"}, all)
}

// singles returns the features of a table as vectors of float32.
func singles(t trial.Table) arrow.Record {
	b := array.NewFixedSizeListBuilder(memory.NewGoAllocator(), int32(t.D), arrow.PrimitiveTypes.Float32)
	for i := range t.N {
		b.Append(true)
		for _, v := range t.Row(i) {
			b.ValueBuilder().(*array.Float32Builder).Append(float32(v))
		}
	}
	a := b.NewArray()
	return array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "features", Type: a.DataType()}}, nil), []arrow.Array{a}, int64(t.N))
}

func sparse(t trial.Table) func(b *engine.Builder) *engine.Dataset {
	t.Sparse = true
	return t.Dataset
}

func TestSameBits(t *testing.T) {
	wild := trial.Wild(400, 4)
	thin := trial.Wild(400, 30)
	r := sharding.NewRandom(4, "thin", 0, 0)
	for i := range thin.X {
		if i%30 < 20 && r.Float64() < 0.95 || i%30 >= 20 && i%10 != (i/30)%10 {
			thin.X[i] = 0 // some pairs of features occur in the same row, and some do not
		}
	}
	thin.Sparse = true
	for _, table := range []trial.Table{wild, thin} {
		build := func(b *engine.Builder) {
			table, err := bins.Check("bins.Test", table.Dataset(b), bins.Columns{Label: "label", Weight: "weight"}, bins.ClassLabel, bins.Options{MaxBins: 20})
			require.NoError(t, err)
			engine.Collect(table.Facts, "facts")
			engine.Collect(open(b, table), "rows")
		}
		trial.SameBits(t, build)
		require.NotContains(t, trial.Run(t, build).Plan.Text(), "depends on parallelism")
	}
}

func TestRowsThatWereOnDiskAreTheSame(t *testing.T) {
	wild := trial.Wild(1000, 12)
	for _, sparse := range []bool{false, true} {
		wild.Sparse = sparse
		c := bins.Columns{Label: "label", Weight: "weight"}
		want := look(t, wild.Dataset, c, bins.ClassLabel, bins.Options{MaxBins: 9})
		r := trial.Run(t, func(b *engine.Builder) {
			engine.Collect(check(b, wild.Dataset(b), c, bins.ClassLabel, bins.Options{MaxBins: 9}), "seen")
		}, engine.MemoryBudget(280_000), engine.Parallelism(2))
		require.Positive(t, r.Report.Spilled)
		require.Equal(t, want, collect(t, r))
	}
}

func TestCutsDoNotDependOnTheOrderOfRows(t *testing.T) {
	wild := trial.Wild(500, 3)
	s := look(t, wild.Dataset, bins.Columns{Weight: "weight"}, bins.NoLabel, bins.Options{MaxBins: 30})
	turned := wild
	turned.X, turned.Weight = nil, nil
	for i := range wild.N {
		turned.X = append(turned.X, wild.Row(wild.N-1-i)...)
		turned.Weight = append(turned.Weight, wild.Weight[wild.N-1-i])
	}
	other := look(t, turned.Dataset, bins.Columns{Weight: "weight"}, bins.NoLabel, bins.Options{MaxBins: 30})
	require.Equal(t, s.Layout, other.Layout)
}

func TestFactsAreThoseOfRows(t *testing.T) {
	wild := trial.Wild(300, 2)
	for _, kind := range []bins.LabelKind{bins.NumberLabel, bins.ClassLabel} {
		s := look(t, wild.Dataset, bins.Columns{Label: "label", Weight: "weight"}, kind, bins.Options{})
		var want rows.Facts
		r := trial.Run(t, func(b *engine.Builder) {
			table, err := rows.Check("rows.Test", wild.Dataset(b), rows.Columns{Label: "label", Weight: "weight"}, kind)
			require.NoError(t, err)
			engine.Collect(table.Init(comqueue.New(b, "facts")).
				Do(func(ctx *comqueue.ComContext) error { return nil }).SetMaxIter(1).
				CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]float64, error) {
					f, err := table.FactsOf(ctx)
					want = *f
					return nil, err
				})).Exec(), "seen")
		})
		require.NotNil(t, r)
		got := s.Facts
		require.Equal(t, []any{want.Declared, want.Rows, want.Weighing, want.Weight, want.LabelMean, want.LabelStd, want.LabelMin, want.LabelMax},
			[]any{got.Declared, got.Rows, got.Weighing, got.Weight, got.LabelMean, got.LabelStd, got.LabelMin, got.LabelMax})
		require.Equal(t, want.Classes, got.Classes)
		require.Equal(t, want.ClassWeights, got.ClassWeights)
		require.Equal(t, want.LabelType, got.LabelType)
		for i, row := range s.Rows {
			require.Equal(t, wild.Label[i], row.Label)
			require.Equal(t, wild.Weight[i], row.Weight)
		}
		rows := int64(0)
		for _, n := range got.ShardRows {
			rows += n
		}
		require.Equal(t, int64(wild.N), rows)
	}
}

func TestColumnsOfEveryKind(t *testing.T) {
	rec := columnsRecord([]string{"x", "flag", "colour", "code", "small", "y", "m1", "m2", "upper"},
		[]float64{1, nan, 3, 1, 2, 2}, []bool{true, false, true, true, false, false},
		[]string{"red", "green", "-", "blue", "red", "red"}, []int64{7, 3, 3, 500, 7, 3},
		[]float32{0.1, 0.1, 0.2, 0.1, 0.2, 0.1}, []string{"b", "a", "b", "c", "a", "b"},
		[]float64{1, 2, 3, 4, 5, 6}, []float64{-1, -2, -3, -4, -5, -6}, []float64{2, 3, inf, 5, 6, 7})
	c := bins.Columns{Features: []string{"x", "flag", "colour", "code", "small"}, Categorical: []string{"code"}, Label: "y", Margins: []string{"m1", "m2"}}
	s := look(t, dataset(rec), c, bins.ClassLabel, bins.Options{}, engine.Shards(2), engine.Parallelism(2))
	require.Equal(t, []string{"a", "b", "c"}, s.Facts.Classes)
	f := s.Layout.Features
	require.Equal(t, []float32{1.5, 2.5}, f[0].Cuts)
	require.Equal(t, []float32{0.5}, f[1].Cuts)
	require.Equal(t, []string{"blue", "green", "red"}, f[2].Names)
	require.True(t, f[2].Categorical)
	require.Equal(t, []int32{3, 7, 500}, f[3].Codes)
	require.Len(t, f[4].Cuts, 1)
	require.Equal(t, []int64{1, 0, 1, 0, 0}, s.Facts.Missing)
	var bin [][]int
	var labels []float64
	for i, row := range s.Rows {
		bin = append(bin, row.Bins)
		labels = append(labels, row.Label)
		require.Equal(t, []float64{float64(i + 1), -float64(i + 1)}, row.Margins)
	}
	require.Equal(t, [][]int{{0, 1, 2, 1, 0}, {3, 0, 1, 0, 0}, {2, 1, 3, 0, 1}, {0, 1, 0, 2, 0}, {1, 0, 2, 1, 1}, {1, 0, 2, 0, 0}}, bin)
	require.Equal(t, []float64{1, 0, 1, 2, 0, 1}, labels)
	require.Equal(t, []string{"x", "flag", "colour", "code", "small"}, []string{f[0].Name, f[1].Name, f[2].Name, f[3].Name, f[4].Name})

	c = bins.Columns{Features: []string{"x"}, Label: "m1", LabelUpper: "upper"}
	s = look(t, dataset(rec), c, bins.NumberLabel, bins.Options{})
	require.Equal(t, "+Inf", s.Rows[2].Upper)
	require.Equal(t, 3.5, s.Facts.LabelMean)
}

func TestRowsOfAGroupStandTogether(t *testing.T) {
	const n = 300
	id, x := make([]int64, n), make([]float64, n)
	r := sharding.NewRandom(9, "groups", 0, 0)
	for i := range id {
		id[i], x[i] = int64(40*r.Float64()), float64(i)
	}
	rec := columnsRecord([]string{"q", "x", "y"}, id, x, x)
	c := bins.Columns{Features: []string{"x"}, Label: "y", Group: "q"}
	build := func(b *engine.Builder) {
		engine.Collect(check(b, dataset(rec)(b), c, bins.NumberLabel, bins.Options{}), "seen")
	}
	trial.SameBits(t, build)
	s := collect(t, trial.Run(t, build, engine.Parallelism(3), engine.BatchRows(5)))
	require.Len(t, s.Rows, n)
	where := map[int64]string{} // value of q -> the shard and the group of its rows
	keys := map[string]int64{}
	last := map[int64]float64{}
	for _, row := range s.Rows {
		key := id[int(row.Label)]
		place := fmt.Sprint(row.Shard, row.Group)
		if at, ok := where[key]; ok {
			require.Equal(t, at, place)
			require.Greater(t, row.Label, last[key], "rows of a group must keep their order")
		} else {
			_, taken := keys[place]
			require.False(t, taken)
		}
		where[key], keys[place], last[key] = place, key, row.Label
	}
	require.EqualValues(t, len(where), s.Facts.Groups)
	require.Greater(t, len(where), 35)
}

func TestEvaluationRowsAreBinnedByTheCutsOfTraining(t *testing.T) {
	train := columnsRecord([]string{"x", "colour", "code", "y"},
		[]float64{1, 2, 3, 4}, []string{"red", "green", "red", "blue"}, []int64{1, 2, 1, 2}, []string{"no", "yes", "no", "yes"})
	other := columnsRecord([]string{"y", "code", "colour", "x"},
		[]string{"yes", "yes", "no"}, []int64{2, 70_000, -5}, []string{"blue", "violet", "-"}, []float64{-inf, 2.5, nan})
	c := bins.Columns{Features: []string{"x", "colour", "code"}, Categorical: []string{"code"}, Label: "y"}
	r := trial.Run(t, func(b *engine.Builder) {
		a, err := bins.Check("bins.Test", dataset(train)(b), c, bins.ClassLabel, bins.Options{})
		require.NoError(t, err)
		e, err := a.Other("held out", dataset(other)(b), false)
		require.NoError(t, err)
		engine.Collect(open(b, a, e), "seen")
	}, engine.Shards(1))
	s := collect(t, r)
	require.Len(t, s.Rows, 3)
	require.Equal(t, []int{0, 0, 1}, s.Rows[0].Bins)
	require.Equal(t, []int{2, 3, 2}, s.Rows[1].Bins) // 2.5 is a cut, so it is in the bin above; the categories violet and 70,000 are unseen, so they are missing
	require.Equal(t, []int{4, 3, 2}, s.Rows[2].Bins)
	require.Equal(t, []float64{1, 1, 0}, []float64{s.Rows[0].Label, s.Rows[1].Label, s.Rows[2].Label})
	require.EqualValues(t, 4, s.Facts.Rows)
}

func TestSetHasTheSideWhereMissingDoesNotGo(t *testing.T) {
	f := bins.Feature{Categorical: true, Codes: []int32{1, 5, 40}, Bins: 3}
	goes := func(words []uint32, setRight bool, code int) (left bool) {
		in := code/32 < len(words) && words[code/32]>>(code%32)&1 == 1
		return in != setRight
	}
	for choice := range 8 {
		for _, missingLeft := range []bool{false, true} {
			left := func(b int) bool { return choice>>b&1 == 1 }
			words, setRight := f.Set(left, missingLeft)
			for b, code := range f.Codes {
				require.Equal(t, left(b), goes(words, setRight, int(code)))
			}
			for _, unseen := range []int{0, 2, 41, 4000} {
				require.Equal(t, missingLeft, goes(words, setRight, unseen))
			}
		}
	}
}
