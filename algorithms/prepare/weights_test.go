package prepare_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// weighted is a row with a weight column.
type weighted struct {
	X *float64               `column:"x"`
	V []float64              `column:"v,dim=3"`
	S operators.SparseVector `column:"s"`
	C string                 `column:"c"`
	W *float64               `column:"w"`
}

// weightedRows returns rows with the weights 0 to 4. The numbers in rows of weight 0 are far
// from the numbers in other rows, so that they would change any result in which they were
// included.
func weightedRows() []weighted {
	var rows []weighted
	for i := range 90 {
		f := float64(i)
		r := weighted{
			X: p(math.Round(100*math.Sin(f)) / 8), V: []float64{1e6 + math.Cos(f), f * f, math.Sin(3 * f)}, C: string(rune('a' + i*i%7)),
			S: operators.SparseVector{Indices: []int32{int32(i % 3), 3}, Values: []float64{f / 7, 1e7 + f}}, W: p(float64(i * 7 % 5)),
		}
		if i%11 == 4 {
			r.X = nil
		}
		if *r.W == 0 {
			r.X, r.V = p(math.Inf(1)), []float64{-1e300, math.Inf(-1), 1e9}
			r.S.Values = []float64{math.Inf(1), -1e30}
		}
		rows = append(rows, r)
	}
	return rows
}

// learn returns the model that a preparation learns from rows.
func learn(t *testing.T, rows []weighted, s model.Stage) model.Binder {
	t.Helper()
	r := trial.Run(t, func(b *engine.Builder) { engine.Collect(s.Fit(operators.FromSlice(b, rows)), "model") })
	m, err := prepare.ModelOf(r, "model")
	require.NoError(t, err)
	return m
}

// numbersIn returns the numbers that a model learned.
func numbersIn(m model.Binder) [][]float64 {
	switch m := m.(type) {
	case *prepare.ScalerModel:
		return append(append([][]float64{}, m.Shift...), m.Scale...)
	case *prepare.BucketModel:
		return m.Bounds
	case *prepare.ImputerModel:
		var all [][]float64
		for _, f := range m.Fills {
			all = append(all, f.Numbers)
		}
		return all
	case *prepare.PCAModel:
		return append([][]float64{m.Mean, m.Variance, m.Ratio}, m.Components...)
	}
	panic(m.Kind())
}

// TestCategoriesByWeight requires that values in rows of weight 0 are ignored, and that other
// values count with the weight of their rows.
func TestCategoriesByWeight(t *testing.T) {
	var rows []weighted
	for _, r := range []struct {
		c string
		w float64
	}{{"a", 3}, {"z", 0}, {"b", 0.5}, {"b", 0.5}} {
		rows = append(rows, weighted{C: r.c, W: p(r.w), V: []float64{0, 0, 0}})
	}
	m := learn(t, rows, prepare.OneHotEncoder{Columns: []string{"c"}, WeightCol: "w", Unknown: prepare.Shares}).(*prepare.OneHotModel)
	require.Equal(t, [][]string{{"a", "b"}}, m.Values)
	require.Equal(t, [][]float64{{0.75, 0.25}}, m.Shares)
}

// TestMissingMakesNull requires that with NullMissing a missing value makes the vector null,
// and that all other vectors are the same as without NullMissing.
func TestMissingMakesNull(t *testing.T) {
	type row struct {
		C *string
		X *float64
	}
	rows := []row{{p("a"), p(1.0)}, {nil, p(2.0)}, {p("b"), nil}, {p("b"), p(math.NaN())}, {p("b"), p(0.0)}}
	encoder := prepare.OneHotEncoder{Columns: []string{"c"}, Outputs: []string{"v"}, NullMissing: true, Unknown: prepare.Shares}
	assembler := prepare.VectorAssembler{Columns: []string{"v", "x"}, Output: "all", Form: prepare.Dense, NullMissing: true}
	r := trial.Run(t, func(b *engine.Builder) {
		d := operators.FromSlice(b, rows)
		d = encoder.Apply(d, encoder.Fit(d))
		d = assembler.Apply(d, assembler.Fit(d))
		engine.Collect(operators.Select(d, "all"), "rows")
	})
	type made struct{ All *[]float64 }
	got, err := engine.Rows[made](r, "rows")
	require.NoError(t, err)
	require.Equal(t, []made{{&[]float64{1, 0, 1}}, {}, {}, {}, {&[]float64{0, 1, 0}}}, got)
	require.ErrorContains(t, prepare.OneHotEncoder{Columns: []string{"c"}, NullMissing: true, RefuseMissing: true}.Validate(), "RefuseMissing and NullMissing are both set")
}

// TestWeightsAreRepetitions requires that integer weights give the same model as repeated rows,
// and that rows of weight 0 are ignored, whatever their values are.
func TestWeightsAreRepetitions(t *testing.T) {
	rows := weightedRows()
	var repeated []weighted
	for _, r := range rows {
		for range int(*r.W) {
			repeated = append(repeated, r)
		}
	}
	columns := []string{"x", "v"}
	for name, of := range map[string]func(weight string) model.Stage{
		"standard": func(w string) model.Stage {
			return prepare.StandardScaler{Columns: []string{"x", "v", "s"}, WeightCol: w}
		},
		"min-max": func(w string) model.Stage { return prepare.MinMaxScaler{Columns: columns, WeightCol: w} },
		"max-abs": func(w string) model.Stage { return prepare.MaxAbsScaler{Columns: []string{"x", "s"}, WeightCol: w} },
		"robust":  func(w string) model.Stage { return prepare.RobustScaler{Columns: columns, WeightCol: w} },
		"mean":    func(w string) model.Stage { return prepare.Imputer{Columns: columns, WeightCol: w} },
		"median": func(w string) model.Stage {
			return prepare.Imputer{Columns: columns, Strategy: prepare.Median, WeightCol: w}
		},
		"buckets": func(w string) model.Stage {
			return prepare.QuantileDiscretizer{Columns: []string{"x"}, Buckets: 7, WeightCol: w}
		},
		"pca":      func(w string) model.Stage { return prepare.PCA{Columns: []string{"v"}, WeightCol: w} },
		"weighing": func(w string) model.Stage { return prepare.StandardScaler{Columns: []string{"w", "x"}, WeightCol: w} },
	} {
		t.Run(name, func(t *testing.T) {
			m := learn(t, rows, of("w"))
			got, want := numbersIn(m), numbersIn(learn(t, repeated, of("")))
			require.Len(t, got, len(want))
			for i := range want {
				require.Len(t, got[i], len(want[i]))
				for j, v := range want[i] {
					require.InDelta(t, v, got[i][j], 1e-9*math.Abs(v))
				}
			}
			for _, in := range m.Inputs() {
				require.True(t, in.Column != "w" || name == "weighing", "only the scaler that scales the column of weights may have it as an input")
			}
			trial.SameBits(t, func(b *engine.Builder) {
				engine.Collect(of("w").Fit(operators.FromSlice(b, rows)), "model")
			})
		})
	}
	mode := prepare.Imputer{Columns: []string{"c"}, Strategy: prepare.Mode}
	want := learn(t, repeated, mode).(*prepare.ImputerModel).Fills
	mode.WeightCol = "w"
	require.Equal(t, want, learn(t, rows, mode).(*prepare.ImputerModel).Fills)
}

// TestWeightsThatAreNoWholeNumbers compares a StandardScaler with StandardScaler().fit(x,
// sample_weight=w) of scikit-learn 1.9.1, for x = 1, 2, 4, 8, 16 and w = 0.5, 0.25, 2, 0.125,
// 0.75. It also compares medians and quantiles with values computed by hand. The five values
// occupy the ranks from 0, 0.5, 0.75, 2.75 and 2.875 on, and the largest value ends at rank
// 3.625.
func TestWeightsThatAreNoWholeNumbers(t *testing.T) {
	var rows []weighted
	for i, w := range []float64{0.5, 0.25, 2, 0.125, 0.75} {
		rows = append(rows, weighted{X: p(math.Exp2(float64(i))), V: []float64{0, 0, 0}, W: p(w)})
	}
	m := learn(t, rows, prepare.StandardScaler{Columns: []string{"x"}, WeightCol: "w"}).(*prepare.ScalerModel)
	require.InEpsilon(t, 6.068965517241379, m.Shift[0][0], 1e-14)
	require.InEpsilon(t, 5.2518045140678415, m.Scale[0][0], 1e-14)
	// The median is at rank 2.625/2 = 1.3125, between ranks 1 and 2, whose values are both
	// 4. The quantile 0.9 is at rank 2.3625, between ranks 2 and 2.625, whose values are
	// both 4.
	median := learn(t, rows, prepare.Imputer{Columns: []string{"x"}, Strategy: prepare.Median, WeightCol: "w"})
	require.Equal(t, [][]float64{{4}}, numbersIn(median))
	// The quantile 1/3 is at rank 0.875, between rank 0, whose value is 1, and rank 1, whose
	// value is 4. The quantile 2/3 is at rank 1.75.
	buckets := learn(t, rows, prepare.QuantileDiscretizer{Columns: []string{"x"}, Buckets: 3, WeightCol: "w"})
	require.InDeltaSlice(t, []float64{1 + 3*0.875, 4}, numbersIn(buckets)[0], 1e-14)
	// The weights sum to less than 1.
	for i := range rows {
		*rows[i].W /= 16
	}
	robust := learn(t, rows, prepare.RobustScaler{Columns: []string{"x"}, WeightCol: "w"})
	require.Equal(t, [][]float64{{1}, {1}}, numbersIn(robust), "if the total weight is below 1, all quantiles must be the least value")
}

func TestScalersOfWildWeights(t *testing.T) {
	for _, s := range []model.Stage{
		prepare.StandardScaler{Columns: []string{"features", "label"}, WeightCol: "weight"},
		prepare.RobustScaler{Columns: []string{"features"}, WeightCol: "weight"},
		prepare.Imputer{Columns: []string{"label"}, Strategy: prepare.Median, WeightCol: "weight"},
	} {
		trial.SameBits(t, func(b *engine.Builder) { engine.Collect(s.Fit(trial.Wild(200, 3).Dataset(b)), "model") })
	}
}

func TestBadWeights(t *testing.T) {
	with := func(w *float64) func(b *engine.Builder) *engine.Dataset {
		rows := weightedRows()
		rows[40].W = w
		return func(b *engine.Builder) *engine.Dataset { return operators.FromSlice(b, rows) }
	}
	zeros := weightedRows()
	for i := range zeros {
		zeros[i].W = p(0.0)
	}
	for _, s := range []func(w string) model.Stage{
		func(w string) model.Stage { return prepare.StandardScaler{Columns: []string{"x"}, WeightCol: w} },
		func(w string) model.Stage { return prepare.MinMaxScaler{Columns: []string{"x"}, WeightCol: w} },
		func(w string) model.Stage {
			return prepare.Imputer{Columns: []string{"c"}, Strategy: prepare.Mode, WeightCol: w}
		},
		func(w string) model.Stage { return prepare.QuantileDiscretizer{Columns: []string{"x"}, WeightCol: w} },
		func(w string) model.Stage { return prepare.PCA{Columns: []string{"v"}, WeightCol: w} },
	} {
		for text, rows := range map[string]func(b *engine.Builder) *engine.Dataset{
			"the weight is -1; a weight is 0 or more": with(p(-1.0)),
			"the weight is NaN; leave such rows out":  with(p(math.NaN())),
			"the weight is +Inf; leave such rows out": with(p(math.Inf(1))),
			"the weight is null; leave such rows out": with(nil),
			"every row weighs 0":                      func(b *engine.Builder) *engine.Dataset { return operators.FromSlice(b, zeros) },
		} {
			failsTo(t, func(b *engine.Builder) { engine.Collect(s("w").Fit(rows(b)), "model") }, text, `column "w"`)
		}
		failsTo(t, func(b *engine.Builder) { s("weight").Fit(with(nil)(b)) }, `WeightCol: no column "weight"`, "weights_test.go")
		failsTo(t, func(b *engine.Builder) { s("c").Fit(with(nil)(b)) }, `WeightCol: column "c" is utf8, not a number`)
	}
	rows := weightedRows()[1:4]
	for text, weight := range map[string]float64{
		"the rows weigh 0.75 in all": 0.25, `the sum over column "w", the weights, exceeds the range`: 1e308,
	} {
		for i := range rows {
			rows[i].W = p(weight)
		}
		failsTo(t, func(b *engine.Builder) {
			engine.Collect(prepare.PCA{Columns: []string{"v"}, WeightCol: "w"}.Fit(operators.FromSlice(b, rows)), "model")
		}, text)
	}
}
