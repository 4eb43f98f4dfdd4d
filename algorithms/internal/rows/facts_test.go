package rows_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/stat"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// column returns the values of feature j of a table.
func column(t trial.Table, j int) []float64 {
	var x []float64
	for i := range t.N {
		x = append(x, t.Row(i)[j])
	}
	return x
}

// populationStd returns the standard deviation around the mean that gonum computes, with the
// total weight as the divisor.
func populationStd(x, w []float64) float64 {
	mean := stat.Mean(x, w)
	var sum, total float64
	for i, v := range x {
		u := 1.0
		if w != nil {
			u = w[i]
		}
		sum += u * (v - mean) * (v - mean)
		total += u
	}
	return math.Sqrt(sum / total)
}

func maxAbs(x []float64) float64 {
	var m float64
	for _, v := range x {
		m = max(m, math.Abs(v))
	}
	return m
}

func TestFactsAreThoseOfGonum(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		for _, weighted := range []bool{false, true} {
			table := trial.Gaussian(3, 500, 6)
			for i := range table.N {
				row := table.Row(i)
				row[1] = 1e6 + 1e-3*row[1] // large mean, small deviation
				row[2] = 0.1               // constant
				if i%3 > 0 {
					row[3] = 0
				}
				row[5] = 0 // the feature occurs in no row
				table.Label = append(table.Label, 1e9+row[0])
				table.Weight = append(table.Weight, math.Abs(row[4]))
			}
			table.Sparse = sparse
			c, w := rows.Columns{Label: "label"}, []float64(nil)
			if weighted {
				c.Weight, w = "weight", table.Weight
			}
			f, got := look(t, func(b *engine.Builder) *engine.Dataset { return table.Dataset(b) }, c, rows.NumberLabel)
			require.Equal(t, 6, f.Dim())
			require.EqualValues(t, 500, f.Rows)
			require.Len(t, got, 500)
			for j := range table.D {
				x := column(table, j)
				if j != 2 {
					require.InDelta(t, stat.Mean(x, w), f.Mean[j], 1e-14*(1+maxAbs(x)), "feature %d", j)
					require.InDelta(t, populationStd(x, w), f.Std[j], 1e-7*populationStd(x, w), "feature %d", j)
				}
				require.Equal(t, maxAbs(x), f.MaxAbs[j])
			}
			require.Zero(t, f.Std[2])
			require.Equal(t, 0.1, f.Mean[2])
			require.InEpsilon(t, stat.Mean(table.Label, w), f.LabelMean, 1e-15)
			require.InEpsilon(t, populationStd(table.Label, w), f.LabelStd, 1e-6)
			require.Greater(t, f.LabelMax, f.LabelMin)
			for i, r := range got {
				require.Equal(t, table.Label[i], r.Label)
				for j, v := range r.X {
					require.Equal(t, table.Row(i)[j], v)
				}
				if weighted {
					require.Equal(t, table.Weight[i], r.Weight)
				}
			}
		}
	}
}

// wideRow is a sparse row with few of 20,000,000 declared features.
type wideRow struct {
	Y float64
	V batch.SparseVector `column:"v,size=20000000"`
}

// valueOf returns the value of a column. It is the same in every wideRow that has the column.
func valueOf(column int32) float64 { return 1 + float64(column%97) }

// wide returns row i. The indices of its eight features are multiples of 6,661, so that few
// different features occur.
func wide(r sharding.Random, i int64) wideRow {
	row := wideRow{Y: float64(i % 3)}
	at := int32(0)
	for len(row.V.Indices) < 8 {
		at += int32(1 + r.IntN(300))
		row.V.Indices = append(row.V.Indices, at*6_661)
		row.V.Values = append(row.V.Values, valueOf(at*6_661))
	}
	row.V.Size = 20_000_000
	return row
}

func TestWideRowsRunOverTheColumnsThatOccur(t *testing.T) {
	data := func(b *engine.Builder) *engine.Dataset {
		return operators.Generate(b, 300, wide).Named("wide")
	}
	f, got := look(t, data, rows.Columns{Label: "y"}, rows.NumberLabel)
	require.Equal(t, 20_000_000, f.Declared)
	require.NotEmpty(t, f.Columns)
	require.LessOrEqual(t, f.Dim(), 300*8)
	for i := 1; i < f.Dim(); i++ {
		require.Less(t, f.Columns[i-1], f.Columns[i])
	}
	sum, squares, entries := make([]float64, f.Dim()), make([]float64, f.Dim()), 0
	for _, r := range got {
		for j, v := range r.X {
			sum[j] += v
			squares[j] += v * v
			entries++
			require.Zero(t, f.Columns[j]%6_661)
			require.Equal(t, valueOf(f.Columns[j]), v)
		}
	}
	require.Equal(t, 300*8, entries)
	for j := range sum {
		require.InDelta(t, sum[j]/300, f.Mean[j], 1e-12)
		require.InDelta(t, math.Sqrt(squares[j]/300-square(sum[j]/300)), f.Std[j], 1e-10)
	}
}

func square(v float64) float64 { return v * v }

func TestManyWindowsOfColumns(t *testing.T) {
	// There are 150,000 features, all of which occur, so the statistics are computed in two
	// windows.
	const features = 150_000
	type dense struct{ X []float64 }
	type sparse struct {
		X batch.SparseVector `column:"x,size=150000"`
	}
	type statistics struct {
		Std    []float64
		MaxAbs []float64
	}
	for name, data := range map[string]func(b *engine.Builder) *engine.Dataset{
		"dense": func(b *engine.Builder) *engine.Dataset {
			return operators.Generate(b, 3, func(_ sharding.Random, i int64) dense {
				x := make([]float64, features)
				for j := range x {
					x[j] = float64(int64(j) * (i - 1))
				}
				return dense{x}
			})
		},
		"sparse": func(b *engine.Builder) *engine.Dataset {
			return operators.Generate(b, 3, func(_ sharding.Random, i int64) sparse {
				v := batch.SparseVector{Size: features}
				for j := range features {
					if i != 1 {
						v.Indices, v.Values = append(v.Indices, int32(j)), append(v.Values, float64(int64(j)*(i-1)))
					}
				}
				return sparse{v}
			})
		},
	} {
		r := trial.Run(t, func(b *engine.Builder) {
			checked, err := rows.Check("test", data(b), rows.Columns{}, rows.NoLabel)
			require.NoError(t, err)
			engine.Collect(checked.Facts, "facts")
		})
		found, err := engine.Rows[statistics](r, "facts")
		require.NoError(t, err)
		require.Len(t, found[0].Std, features)
		for _, j := range []int{0, 1, 131_071, 131_072, features - 1} {
			require.InDelta(t, float64(j)*math.Sqrt(2.0/3), found[0].Std[j], 1e-10, "%s rows, feature %d", name, j)
			require.EqualValues(t, j, found[0].MaxAbs[j])
		}
	}
}

func TestClassesOfEveryType(t *testing.T) {
	for name, c := range map[string]struct {
		rows func(b *engine.Builder) *engine.Dataset
		want []string
		kind string
	}{
		"ints":   {labelled[int64](10, -3, 2, -3), []string{"-3", "2", "10"}, "int64"},
		"small":  {labelled[int8](10, -3, 2, -3), []string{"-3", "2", "10"}, "int8"},
		"uints":  {labelled[uint64](math.MaxUint64, 3, 2, 3), []string{"2", "3", "18446744073709551615"}, "uint64"},
		"floats": {labelled(10.5, -3, 2, math.Copysign(0, -1), 0), []string{"-3", "0", "2", "10.5"}, "float64"},
		"single": {labelled[float32](0.1, -3), []string{"-3", "0.1"}, "float32"},
		"text":   {labelled("b", "", "ä", "B", "b"), []string{"", "B", "b", "ä"}, "utf8"},
		"bools":  {labelled(true, false, true), []string{"false", "true"}, "bool"},
	} {
		t.Run(name, func(t *testing.T) {
			f, got := look(t, c.rows, rows.Columns{Label: "y"}, rows.ClassLabel)
			require.Equal(t, c.want, f.Classes)
			require.Equal(t, c.kind, f.LabelType)
			var total float64
			for _, w := range f.ClassWeights {
				total += w
			}
			require.EqualValues(t, len(got), total)
			counts := make([]float64, len(c.want))
			for _, r := range got {
				counts[int(r.Label)]++
			}
			require.Equal(t, f.ClassWeights, counts)
		})
	}
}

// labelled returns a function that adds a dataset with the given labels and one feature.
func labelled[T any](labels ...T) func(b *engine.Builder) *engine.Dataset {
	type row struct {
		Y T
		X []float64 `column:"x,dim=1"`
	}
	return func(b *engine.Builder) *engine.Dataset {
		var all []row
		for i, y := range labels {
			all = append(all, row{y, []float64{float64(i)}})
		}
		return operators.FromSlice(b, all)
	}
}

func TestFeaturesOfNumberColumns(t *testing.T) {
	type row struct {
		Y    float64
		A    int32
		B    bool
		C    float32
		W    int8
		Seen bool
	}
	data := func(b *engine.Builder) *engine.Dataset {
		return operators.FromSlice(b, []row{{1, 2, true, 0.5, 1, true}, {2, -4, false, 1.5, 3, false}})
	}
	f, got := look(t, data, rows.Columns{Features: []string{"c", "a", "b"}, Label: "y", Weight: "w", Censor: "seen"}, rows.NumberLabel)
	require.Equal(t, 3, f.Dim())
	require.Equal(t, map[int]float64{0: 0.5, 1: 2, 2: 1}, got[0].X)
	require.Equal(t, seenRow{X: map[int]float64{0: 1.5, 1: -4, 2: 0}, Label: 2, Weight: 3, Censor: 0}, got[1])
	require.Equal(t, 1.25, f.Mean[0])
	require.Equal(t, 4.0, f.Weight)
}

func TestVectorsOfOpenLengthAndSinglePrecision(t *testing.T) {
	type open struct{ X []float64 }
	type single struct {
		X []float32 `column:"x,dim=2"`
	}
	f, got := look(t, func(b *engine.Builder) *engine.Dataset {
		return operators.FromSlice(b, []open{{[]float64{1, 2}}, {[]float64{3, 5}}})
	}, rows.Columns{}, rows.NoLabel)
	require.Equal(t, []float64{2, 3.5}, f.Mean)
	require.Equal(t, map[int]float64{0: 3, 1: 5}, got[1].X)
	f, _ = look(t, func(b *engine.Builder) *engine.Dataset {
		return operators.FromSlice(b, []single{{[]float32{1, 2}}, {[]float32{3, 5}}})
	}, rows.Columns{}, rows.NoLabel)
	require.Equal(t, []float64{2, 3.5}, f.Mean)
}

func TestSparseRowsWithoutASize(t *testing.T) {
	type row struct{ V batch.SparseVector }
	f, _ := look(t, func(b *engine.Builder) *engine.Dataset {
		return operators.FromSlice(b, []row{
			{batch.SparseVector{Indices: []int32{1}, Values: []float64{4}}},
			{batch.SparseVector{Indices: []int32{6}, Values: []float64{-2}}},
			{batch.SparseVector{}},
		})
	}, rows.Columns{Vector: "v"}, rows.NoLabel)
	require.Equal(t, 7, f.Declared)
	require.InDelta(t, 4.0/3, f.Mean[1], 1e-15)
	require.Equal(t, []float64{0, 4, 0, 0, 0, 0, 2}, f.MaxAbs)
	require.InDelta(t, math.Sqrt(4.0/3-4.0/9), f.Std[6], 1e-15)
}

func TestSameBits(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		table := trial.Wild(200, 4)
		table.Sparse = sparse
		trial.SameBits(t, func(b *engine.Builder) {
			checked, err := rows.Check("test", table.Dataset(b), rows.Columns{Label: "label", Weight: "weight"}, rows.ClassLabel)
			require.NoError(t, err)
			engine.Collect(checked.Facts, "facts")
			engine.Collect(checked.Rows, "rows")
		})
	}
	trial.SameBits(t, func(b *engine.Builder) {
		checked, err := rows.Check("test", operators.Generate(b, 300, wide).Named("wide"), rows.Columns{Label: "y"}, rows.NumberLabel)
		require.NoError(t, err)
		engine.Collect(checked.Facts, "facts")
	})
}

func TestOneQueueForTheFactsServesTwoTrainings(t *testing.T) {
	table := trial.Gaussian(1, 40, 2)
	r := trial.Run(t, func(b *engine.Builder) {
		checked, err := rows.Check("test", table.Dataset(b), rows.Columns{}, rows.NoLabel)
		require.NoError(t, err)
		for _, name := range []string{"one", "two"} {
			train := checked.Init(comqueue.New(b, name)).
				Do(func(ctx *comqueue.ComContext) error { _, err := checked.Open(ctx); return err }).
				SetMaxIter(1).
				CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]float64, error) {
					f, err := checked.FactsOf(ctx)
					return f.Mean, err
				})).Exec()
			engine.Collect(train, name)
		}
	})
	one, err := engine.Rows[float64](r, "one")
	require.NoError(t, err)
	require.InDelta(t, stat.Mean(column(table, 0), nil), one[0], 1e-15)
	require.NotNil(t, r.Queue("test facts"))
	require.Contains(t, fmt.Sprint(r.Names()), "two")
}
