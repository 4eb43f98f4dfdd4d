package prepare_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// Reference values were computed by scikit-learn 1.9.1 from the same rows:
// StandardScaler().fit_transform, RobustScaler().fit_transform and so on.

var absent = math.NaN()

func TestStandardScaler(t *testing.T) {
	m, r := try(t, table(samples(true)), prepare.StandardScaler{Columns: []string{"age", "rooms", "same", "vector", "sparse"}})
	s := m.(*prepare.ScalerModel)
	require.EqualValues(t, 8, s.Rows())
	require.Equal(t, "float64", m.Inputs()[0].Type)
	near(t, r, "age", -0.054517521771337694, absent, 0.7506643382361121, 0.17193987635575758, absent, -1.3629380442834438, 1.555846198243562, -1.06099484678065)
	near(t, r, "rooms", 0.3540052161969215, -0.45514956368175624, 0.3540052161969215, -0.05057217374241736, 1.972314775954277, -0.8597269536210951, -1.668881733499773, 0.3540052161969215)
	near(t, r, "vector", -1.5275252316519468, -1.3021384396941178, 0.0, -1.091089451179962, 0.5837172315870185, 0.0, -0.6546536707079772, -0.6735198826004059, 0.0,
		-0.2182178902359924, 1.8409543457744428, 0.0, 0.2182178902359924, -0.9878291611472619, 0.0, 0.6546536707079772, absent, 0.0,
		1.091089451179962, 0.26940795304016235, 0.0, 1.5275252316519468, 0.26940795304016235, 0.0)
	require.InDeltaSlice(t, []float64{0.9757809372497497, 2.5860201081971503, 3.06632414300902, 1.6153559979150107}, s.Scale[4], 1e-14)
	require.Equal(t, []float64{0, 0, 0, 0}, s.Shift[4])
	// A constant column is centred exactly, even if its sum was rounded.
	require.Equal(t, []float64{0.1}, s.Shift[2])
	near(t, r, "same", 0, 0, 0, 0, 0, 0, 0, 0)
	golden(t, m)

	_, r = quick(t, table(samples(true)), prepare.StandardScaler{Columns: []string{"rooms"}, NoCenter: true, NoScale: true, Outputs: []string{"r"}})
	near(t, r, "r", 3, 1, 3, 2, 7, 0, -2, 3)
}

func TestMinMaxScaler(t *testing.T) {
	m, r := try(t, table(samples(true)), prepare.MinMaxScaler{Columns: []string{"age", "rooms", "same", "vector", "ragged"}, Min: -1, Max: 1})
	near(t, r, "same", -1, -1, -1, -1, -1, -1, -1, -1)
	near(t, r, "age", -0.10344827586206895, absent, 0.4482758620689655, 0.051724137931034475, absent, -1.0, 1.0, -0.793103448275862)
	near(t, r, "ragged", -0.27272727272727276, -0.06666666666666665, -0.4545454545454546, 0.2, -1.0, 0, 0.2727272727272727, -0.06653333333333332,
		0.4545454545454546, 0.8666666666666667, 0.6363636363636362, -1.0, -0.4545454545454546, -0.06666666666666665, 1.0, 1.0)
	golden(t, m)

	m, r = quick(t, table(samples(false)), prepare.MinMaxScaler{Columns: []string{"rooms"}, Clip: true})
	require.Equal(t, "0", column(t, r, "rooms")[6])
	require.Equal(t, "1", column(t, r, "rooms")[4])
	layout := model.NewLayout("rooms")
	step, err := m.Bind(layout)
	require.NoError(t, err)
	row := layout.NewRow()
	row[0].SetFloat(100)
	require.NoError(t, step(row))
	require.Equal(t, 1.0, row[1].Float)
	row[0].SetFloat(-100)
	require.NoError(t, step(row))
	require.Equal(t, 0.0, row[1].Float)
	row[0].SetText("many")
	require.ErrorContains(t, step(row), `column "rooms": it is text`)
}

func TestMaxAbsScaler(t *testing.T) {
	m, r := try(t, table(samples(false)), prepare.MaxAbsScaler{Columns: []string{"age", "sparse"}, Outputs: []string{"a", "s"}})
	require.Equal(t, [][]float64{{54}, {3, 8, 9, 4}}, m.(*prepare.ScalerModel).Scale)
	near(t, r, "a", 0.4074074074074074, absent, 0.7037037037037037, 0.49074074074074076, 0.6481481481481481, -0.07407407407407407, 1.0, 0.037037037037037035)
	near(t, r, "age", 22, absent, 38, 26.5, 35, -4, 54, 2)
	golden(t, m)
}

func TestRobustScaler(t *testing.T) {
	m, r := try(t, table(samples(true)), prepare.RobustScaler{Columns: []string{"age", "rooms", "same", "vector"}})
	near(t, r, "age", -0.08, absent, 0.4888888888888889, 0.08, absent, -1.0044444444444445, 1.0577777777777777, -0.7911111111111111)
	near(t, r, "rooms", 0.2222222222222222, -0.6666666666666666, 0.2222222222222222, -0.2222222222222222, 2.0, -1.1111111111111112, -2.0, 0.2222222222222222)
	near(t, r, "vector", -1.0, -1.25, 0.0, -0.7142857142857143, 0.25, 0.0, -0.42857142857142855, -0.75, 0.0, -0.14285714285714285, 1.25, 0.0,
		0.14285714285714285, -1.0, 0.0, 0.42857142857142855, absent, 0.0, 0.7142857142857143, 0.0, 0.0, 1.0, 0.0, 0.0)
	golden(t, m)

	_, r = quick(t, table(samples(false)), prepare.RobustScaler{Columns: []string{"rooms"}, Lower: 0.1, Upper: 0.9})
	near(t, r, "rooms", 0.10416666666666669, -0.31250000000000006, 0.10416666666666669, -0.10416666666666669, 0.9375000000000002, -0.5208333333333335, -0.9375000000000002, 0.10416666666666669)
}

// TestStandardScalerOfAConstant requires that the mean of many equal numbers is exactly that
// number, although their sum is rounded.
func TestStandardScalerOfAConstant(t *testing.T) {
	rows := make([]sample, 1000)
	for i := range rows {
		rows[i] = samples(false)[0]
	}
	sum := 0.0
	for range 125 { // 125 rows are in one shard
		sum += rows[0].Same
	}
	require.NotEqual(t, 0.1, sum/125)
	m, r := quick(t, table(rows), prepare.StandardScaler{Columns: []string{"same"}})
	require.Equal(t, [][]float64{{0.1}}, m.(*prepare.ScalerModel).Shift)
	require.Equal(t, "0", column(t, r, "same")[999])
}

func TestScalersOfOneRow(t *testing.T) {
	one := table(samples(false)[:1])
	_, r := try(t, one, prepare.StandardScaler{Columns: []string{"age", "vector"}})
	near(t, r, "vector", 0, 0, 0)
	_, r = quick(t, one, prepare.MinMaxScaler{Columns: []string{"vector"}})
	near(t, r, "vector", 0, 0, 0)
	_, r = quick(t, one, prepare.RobustScaler{Columns: []string{"vector"}})
	near(t, r, "vector", 0, 0, 0)
}

// TestQuantilesAreExact compares quantiles with quantiles computed from the sorted values.
func TestQuantilesAreExact(t *testing.T) {
	wild := trial.Wild(501, 1)
	sorted := append([]float64(nil), wild.X...)
	slices.Sort(sorted)
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(prepare.QuantileDiscretizer{Columns: []string{"weight"}, Buckets: 5}.Fit(wild.Dataset(b)), "model")
		engine.Collect(prepare.RobustScaler{Columns: []string{"features"}}.Fit(wild.Dataset(b)), "robust")
	})
	m, err := prepare.ModelOf(r, "robust")
	require.NoError(t, err)
	s := m.(*prepare.ScalerModel)
	require.Equal(t, sorted[250], s.Shift[0][0])
	require.Equal(t, sorted[375]-sorted[125], s.Scale[0][0])
	slices.Sort(wild.Weight)
	m, err = prepare.ModelOf(r, "model")
	require.NoError(t, err)
	require.Equal(t, []float64{wild.Weight[100], wild.Weight[200], wild.Weight[300], wild.Weight[400]}, m.(*prepare.BucketModel).Bounds[0])
}

func TestScalersOfWildNumbers(t *testing.T) {
	for _, s := range []interface {
		Fit(*engine.Dataset) *engine.Dataset
	}{
		prepare.StandardScaler{Columns: []string{"features", "label", "weight"}},
		prepare.MinMaxScaler{Columns: []string{"features"}},
		prepare.MaxAbsScaler{Columns: []string{"features"}},
		prepare.RobustScaler{Columns: []string{"features", "weight"}},
	} {
		trial.SameBits(t, func(b *engine.Builder) {
			engine.Collect(s.Fit(trial.Wild(300, 4).Dataset(b)), "model")
		})
	}
}

func TestScalersTellWhatIsWrong(t *testing.T) {
	fails(t, nil, prepare.StandardScaler{Columns: []string{"age"}}, "no rows to learn from")
	fails(t, samples(false), prepare.StandardScaler{}, "Columns is empty")
	fails(t, samples(false), prepare.StandardScaler{Columns: []string{"aeg"}}, `"aeg"`, `"age"`)
	fails(t, samples(false), prepare.StandardScaler{Columns: []string{"city"}}, `column "city" is utf8: want numbers or vectors`)
	fails(t, samples(false), prepare.StandardScaler{Columns: []string{"age", "age"}}, `"age" twice`)
	fails(t, samples(false), prepare.StandardScaler{Columns: []string{"age"}, Outputs: []string{"a", "b"}}, "2 Outputs for 1 Columns")
	fails(t, samples(false), prepare.MinMaxScaler{Columns: []string{"sparse"}}, "MaxAbsScaler takes sparse ones")
	fails(t, samples(false), prepare.MinMaxScaler{Columns: []string{"age"}, Min: 2, Max: 1}, "Min is 2")
	fails(t, samples(false), prepare.RobustScaler{Columns: []string{"age"}, Lower: 0.9, Upper: 0.1}, "Lower is 0.9")

	rows := samples(false)
	rows[2].Age = p(math.Inf(1))
	fails(t, rows, prepare.StandardScaler{Columns: []string{"age"}}, `column "age"`, "+Inf", "row 0 of the shard")
	rows = samples(false)
	rows[3].Ragged = []float64{1, 2, 3}
	fails(t, rows, prepare.StandardScaler{Columns: []string{"ragged"}}, "vectors of 2 to 3 components")
	for i := range rows {
		rows[i].Age = nil
	}
	fails(t, rows, prepare.StandardScaler{Columns: []string{"age"}}, `column "age" has no value`)
	rows = samples(false)
	rows[0].Age, rows[1].Age = p(1.7e308), p(1.7e308)
	fails(t, rows, prepare.StandardScaler{Columns: []string{"age"}}, "exceeds the range")
}

// TestStandardScalerOfTinyAndHugeNumbers requires correct deviations even if their squares
// underflow or overflow float64.
func TestStandardScalerOfTinyAndHugeNumbers(t *testing.T) {
	for _, unit := range []float64{1e-320, 1e-200, 1e-100, 1, 1e200, 1e307} {
		rows := samples(false)[:4]
		for i, v := range []float64{1, 2, 3, 4} {
			rows[i].Vector = []float64{v * unit, -v * unit, 0}
			rows[i].Sparse = operators.SparseVector{}
			if i%2 == 0 {
				rows[i].Sparse = operators.SparseVector{Indices: []int32{0}, Values: []float64{unit}}
			}
		}
		m, r := quick(t, table(rows), prepare.StandardScaler{Columns: []string{"vector", "sparse"}})
		s := m.(*prepare.ScalerModel)
		tolerance := 1e-12
		if unit < 1e-300 {
			tolerance = 1e-3
		}
		require.InEpsilon(t, math.Sqrt(1.25), s.Scale[0][0]/unit, tolerance, unit)
		require.InEpsilon(t, 0.5, s.Scale[1][0]/unit, tolerance, unit)
		require.Equal(t, 1.0, s.Scale[0][2])
		got := numbersOf(t, r, "vector")
		for i, v := range []float64{1, 2, 3, 4} {
			require.InDelta(t, (v-2.5)/math.Sqrt(1.25), got[3*i], tolerance, unit)
			require.InDelta(t, (2.5-v)/math.Sqrt(1.25), got[3*i+1], tolerance, unit)
		}
	}
}

// TestScalersOfAHugeConstant requires that the deviation of a constant column is 0, even if the
// constant and its sum are huge.
func TestScalersOfAHugeConstant(t *testing.T) {
	rows := samples(false)
	for i := range rows {
		rows[i].Same, rows[i].Vector = 1e300, []float64{-1.7e308, 1.7e308, float64(i)}
	}
	for _, s := range []model.Stage{
		prepare.StandardScaler{Columns: []string{"same", "vector"}},
		prepare.RobustScaler{Columns: []string{"same", "vector"}},
		prepare.MinMaxScaler{Columns: []string{"same", "vector"}},
	} {
		_, r := quick(t, table(rows), s)
		near(t, r, "same", 0, 0, 0, 0, 0, 0, 0, 0)
		got := numbersOf(t, r, "vector")
		for i := range rows {
			require.Zero(t, got[3*i])
			require.Zero(t, got[3*i+1])
		}
	}
	rows[0].Same, rows[1].Same = 1.7e308, 1.7e308
	fails(t, rows, prepare.StandardScaler{Columns: []string{"same"}}, `the sum over column "same" exceeds the range of float64: scale it down`)
}
