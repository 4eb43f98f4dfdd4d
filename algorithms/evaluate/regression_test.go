package evaluate_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

type predicted struct {
	Label      float64
	Prediction float32
	Weight     float64
}

var (
	numberLabel  = []float64{3, 0.5, 2, 7, 4.25, 1, 0.75, 5.5, 2}
	numberGuess  = []float64{2.5, 0.75, 2, 8, 3.5, 1.25, 1.5, 4, 2.25}
	numberWeight = []float64{1, 2, 0.5, 1.5, 1, 0.25, 3, 0.75, 2}
	numberCols   = evaluate.RegressionOptions{LabelCol: "label", PredictionCol: "prediction", WeightCol: "weight"}
)

func predictedRows(label, prediction, weight []float64) []predicted {
	rows := make([]predicted, len(label))
	for i := range rows {
		rows[i] = predicted{label[i], float32(prediction[i]), 1}
		if weight != nil {
			rows[i].Weight = weight[i]
		}
	}
	return rows
}

func regression(o evaluate.RegressionOptions) func(*engine.Dataset) *engine.Dataset {
	return func(d *engine.Dataset) *engine.Dataset { return evaluate.Regression(d, o) }
}

// TestRegressionEqualsScikitLearn compares reports with scikit-learn's functions of the same
// names, with sample_weight. pinball and d2_pinball have alpha=0.25.
func TestRegressionEqualsScikitLearn(t *testing.T) {
	for _, c := range []struct {
		weight                                                   []float64
		mse, mae, median, r2, explained, mape, pinball, d2a, d2p float64
		deviance                                                 map[float64][2]float64
	}{
		{nil, 0.5347222222222222, 0.5833333333333334, 0.5, 0.8826616999661361, 0.8828310193024043, 0.2926357411651529, 0.2847222222222222, 0.6612903225806452, 0.48750000000000004,
			map[float64][2]float64{
				1: {0.16835576498559926, 0.8928475741413217}, 2: {0.08844005238912188, 0.8649171210602209}, 1.5: {0.11414484910013556, 0.8844101669909236},
				3: {0.07262959719989753, 0.7899024311783311}, -1: {2.3912037037036993, 0.8439387863584228}, 0: {0.5347222222222222, 0.8826616999661361},
			}},
		{numberWeight, 0.49609375, 0.5989583333333334, 0.75, 0.8987577227130804, 0.9071779711685378, 0.4228723686444275, 0.3502604166666667, 0.647239263803681, 0.2807486631016043,
			map[float64][2]float64{
				1: {0.2048675758733787, 0.886447784996161}, 2: {0.13930829363288003, 0.8300453089318599}, 1.5: {0.1608948007429639, 0.8638732688214097},
				3: {0.1261210107640138, 0.7334784682284421}, -1: {2.029296874999995, 0.8718772619519376}, 0: {0.49609375, 0.8987577227130804},
			}},
	} {
		rows := predictedRows(numberLabel, numberGuess, c.weight)
		o := numberCols
		o.Quantile = 0.25
		for _, power := range []float64{1, 2, 1.5, 3, -1, 0} {
			switch o.Deviance, o.Power = evaluate.TweedieDeviance, power; power {
			case 1:
				o.Deviance, o.Power = evaluate.PoissonDeviance, 0
			case 2:
				o.Deviance, o.Power = evaluate.GammaDeviance, 0
			}
			r := measured[evaluate.RegressionReport](t, rows, regression(o))
			requireSame(t, must(evaluate.MeasureRegression(numberLabel, numberGuess, c.weight, o)), r)
			require.InDelta(t, c.deviance[power][0], r.Deviance, 1e-12, power)
			require.InDelta(t, c.deviance[power][1], r.D2Deviance, 1e-12, power)
			for i, v := range [][2]float64{
				{c.mse, r.MSE}, {math.Sqrt(c.mse), r.RMSE}, {c.mae, r.MAE}, {c.median, r.MedianAE}, {c.r2, r.R2}, {c.explained, r.ExplainedVariance},
				{c.mape, r.MAPE}, {c.pinball, r.Pinball}, {c.d2a, r.D2Absolute}, {c.d2p, r.D2Pinball}, {1.5, r.MaxError},
			} {
				require.InDelta(t, v[0], v[1], 1e-12, i)
			}
			require.Empty(t, r.Undefined)
		}
	}
}

// TestDeviancesOfNearlyRightPredictions compares deviances with deviances computed from their
// definitions with 60 digits, by this Python program for powers other than 1 and 2:
//
//	p, y, m = Decimal(p), Decimal(y), Decimal(m); pw = lambda b, e: (b.ln()*e).exp()
//	2*(pw(y, 2-p)/((1-p)*(2-p)) - y*pw(m, 1-p)/(1-p) + pw(m, 2-p)/(2-p))
//
// For the powers 1 and 2, the deviances are 2·(y·log(y/m) − (y−m)) and 2·(log(m/y) + y/m − 1).
func TestDeviancesOfNearlyRightPredictions(t *testing.T) {
	for _, c := range [][4]float64{
		{1, 1000000.5, 1000000.25, 6.249997916667382e-08}, {1, 3, 2.9999, 3.333407409273378e-09}, {1, 1.25, 1, 0.05785887828552439},
		{1, 1.2500001, 1, 0.05785892291424268}, {2, 1000000.5, 1000000, 2.499999166666979e-13}, {1.5, 7, 7.000001, 5.3994917017138846e-14},
		{3, 100.25, 100, 6.234413965087282e-08}, {-1, 1000001, 1000000, 1000000.3333333334}, {-10, 5.05, 5, 25246.471546407698},
		{-10, 5.5, 5, 3471340.7637939453}, {4.5, 0.8, 1, 0.056440710267819556}, {1.1, 0.75, 1, 0.06912207280954583}, {1.1, 0.7499, 1, 0.06918045855062638},
		{1, 2, 2, 0}, {-1, 2, 2, 0},
	} {
		o := evaluate.RegressionOptions{Deviance: evaluate.TweedieDeviance, Power: c[0], NoMedian: true}
		r := must(evaluate.MeasureRegression([]float64{c[1]}, []float64{c[2]}, nil, o))
		require.InDelta(t, c[3], r.Deviance, 1e-13*c[3], "%v", c)
	}
}

func TestRegressionEqualsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 25).Draw(t, "n")
		number := rapid.Map(rapid.IntRange(-12, 12), func(i int) float64 { return float64(i) / 4 })
		label, guess := rapid.SliceOfN(number, n, n).Draw(t, "label"), rapid.SliceOfN(number, n, n).Draw(t, "guess")
		q := rapid.SampledFrom([]float64{0.1, 0.5, 0.7}).Draw(t, "q")
		r := must(evaluate.MeasureRegression(label, guess, nil, evaluate.RegressionOptions{Quantile: q}))
		errors := make([]float64, n)
		var square, total, absolute float64
		loss := func(y, f float64) float64 { return max(q*(y-f), (q-1)*(y-f)) }
		var own float64
		for i := range n {
			errors[i] = math.Abs(label[i] - guess[i])
			square += errors[i] * errors[i]
			absolute += errors[i]
			total += label[i]
			own += loss(label[i], guess[i])
		}
		best, bestAbsolute, about := math.Inf(1), math.Inf(1), 0.0
		for _, c := range label { // one of the labels is the best constant
			var sum, abs float64
			for _, y := range label {
				sum += loss(y, c)
				abs += math.Abs(y - c)
			}
			best, bestAbsolute = min(best, sum), min(bestAbsolute, abs)
			about += (c - total/float64(n)) * (c - total/float64(n))
		}
		slices.Sort(errors)
		requireClose(t, (errors[(n-1)/2]+errors[n/2])/2, r.MedianAE, "median")
		requireClose(t, square/float64(n), r.MSE, "mse")
		requireClose(t, errors[n-1], r.MaxError, "max")
		if bestAbsolute == 0 {
			require.Contains(t, r.Undefined, "r2: the labels of all rows are equal")
			require.True(t, math.IsNaN(r.R2) && math.IsNaN(r.D2Absolute) && math.IsNaN(r.ExplainedVariance))
			return
		}
		require.InDelta(t, 1-square/about, r.R2, 1e-9*(1+square/about))
		require.InDelta(t, 1-absolute/bestAbsolute, r.D2Absolute, 1e-9*(1+absolute/bestAbsolute))
		require.InDelta(t, 1-own/best, r.D2Pinball, 1e-9*(1+own/best))
	})
}

// TestRegressionWeightsRepeatRows requires that integer weights give the same report as
// repeated rows.
func TestRegressionWeightsRepeatRows(t *testing.T) {
	var label, guess []float64
	weight := []float64{1, 0, 3, 2, 1, 4, 0, 1, 2}
	for i, w := range weight {
		for range int(w) {
			label, guess = append(label, numberLabel[i]), append(guess, numberGuess[i])
		}
	}
	o := evaluate.RegressionOptions{Deviance: evaluate.PoissonDeviance, Quantile: 0.3}
	a, b := must(evaluate.MeasureRegression(label, guess, nil, o)), must(evaluate.MeasureRegression(numberLabel, numberGuess, weight, o))
	for i, v := range [][2]float64{
		{a.MSE, b.MSE}, {a.MedianAE, b.MedianAE}, {a.R2, b.R2}, {a.D2Absolute, b.D2Absolute}, {a.D2Pinball, b.D2Pinball},
		{a.D2Deviance, b.D2Deviance}, {a.ExplainedVariance, b.ExplainedVariance}, {a.MAPE, b.MAPE}, {a.MaxError, b.MaxError},
	} {
		requireClose(t, v[0], v[1], string(rune('a'+i)))
	}
}

// TestRegressionFarFromZero requires that labels far from 0 lose no precision by cancellation
// in the sums about the mean.
func TestRegressionFarFromZero(t *testing.T) {
	label, guess := []float64{1e9 + 1, 1e9 + 2, 1e9 + 3, 1e9 + 4}, []float64{1e9 + 1, 1e9 + 2, 1e9 + 3, 1e9 + 5}
	r := must(evaluate.MeasureRegression(label, guess, nil, evaluate.RegressionOptions{}))
	require.Equal(t, 0.8, r.R2)
	require.Equal(t, 0.75, r.D2Absolute)
	r = must(evaluate.MeasureRegression(label, guess, []float64{0.1, 0.1, 0.1, 0.1}, evaluate.RegressionOptions{}))
	require.InDelta(t, 0.8, r.R2, 1e-15)
}

func TestRegressionIsAFunctionOfTheRows(t *testing.T) {
	n := 400
	label, guess, weight := wildNumbers("label", n), wildNumbers("guess", n), wildNumbers("weight", n)
	for i := range n {
		guess[i] = float64(float32(guess[i]))
		weight[i] = math.Abs(weight[i])
	}
	rows := predictedRows(label, guess, weight)
	want := must(evaluate.MeasureRegression(label, guess, weight, numberCols))
	slices.Reverse(rows)
	for _, shards := range []int{1, 128} {
		requireSame(t, want, measured[evaluate.RegressionReport](t, rows, regression(numberCols), engine.Shards(shards), engine.Parallelism(1)))
	}
	o := numberCols
	o.Deviance, o.Power = evaluate.TweedieDeviance, 1.5
	for i := range rows {
		rows[i].Label, rows[i].Prediction = math.Abs(rows[i].Label), float32(math.Abs(float64(rows[i].Prediction)))
	}
	trial.SameBits(t, func(b *engine.Builder) {
		engine.Collect(evaluate.Regression(operators.FromSlice(b, rows), o), "report")
	})
}

func TestRegressionOfLittleAndOfNothing(t *testing.T) {
	o := numberCols
	o.Deviance = evaluate.GammaDeviance
	r := measured[evaluate.RegressionReport](t, []predicted{}, regression(o))
	requireSame(t, must(evaluate.MeasureRegression(nil, nil, nil, o)), r)
	require.Equal(t, []string{"all: there are no rows of positive weight"}, r.Undefined)
	require.True(t, math.IsNaN(r.MSE) && math.IsNaN(r.R2) && math.IsNaN(r.MedianAE) && math.IsNaN(r.MaxError))
	r = measured[evaluate.RegressionReport](t, []predicted{{3, 2, 1}}, regression(o), engine.Parallelism(8))
	require.Equal(t, []float64{1, 1, -1}, []float64{r.MSE, r.MedianAE, r.Bias})
	require.Len(t, r.Undefined, 5)
	require.Contains(t, r.String(), "the labels of all rows are equal")
	o.NoMedian = true
	r = measured[evaluate.RegressionReport](t, []predicted{{3, 2, 1}, {4, 4, 1}}, regression(o))
	require.True(t, math.IsNaN(r.MedianAE) && math.IsNaN(r.D2Absolute))
	require.Empty(t, r.Undefined)
}

func TestDevianceOutsideOfItsDomain(t *testing.T) {
	for _, c := range []struct {
		kind         evaluate.Deviance
		power        float64
		label, guess []float64
		why          string
	}{
		{evaluate.PoissonDeviance, 0, []float64{-1, 2}, []float64{1, 1}, "a label is negative"},
		{evaluate.GammaDeviance, 0, []float64{0, 2}, []float64{1, 1}, "a label is negative, or 0"},
		{evaluate.PoissonDeviance, 0, []float64{0, 2}, []float64{0, 1}, "a prediction is 0 or less"},
		{evaluate.TweedieDeviance, -1, []float64{-3, 1}, []float64{1, 1}, "the mean label is negative"},
		{evaluate.PoissonDeviance, 0, []float64{0, 0}, []float64{1, 1}, "the labels of all rows are equal"},
	} {
		r := must(evaluate.MeasureRegression(c.label, c.guess, nil, evaluate.RegressionOptions{Deviance: c.kind, Power: c.power, NoMedian: true}))
		require.Contains(t, r.Undefined[len(r.Undefined)-1], c.why)
		require.True(t, math.IsNaN(r.D2Deviance))
	}
}

func TestRegressionRefusesWhatItCannotMeasure(t *testing.T) {
	rows := predictedRows(numberLabel, numberGuess, nil)
	for text, o := range map[string]evaluate.RegressionOptions{
		"Quantile is 1":                      {Quantile: 1},
		"Quantile is NaN":                    {Quantile: math.NaN()},
		"Deviance(9)":                        {Deviance: 9},
		"only that of Tweedie":               {Power: 1.5},
		"want 0 or less, or 1":               {Deviance: evaluate.TweedieDeviance, Power: 0.5},
		"Power is +Inf":                      {Deviance: evaluate.TweedieDeviance, Power: math.Inf(1)},
		`PredictionCol: `:                    {PredictionCol: "predictions"},
		`column "weight": the weight is NaN`: {WeightCol: "weight"},
		`column "label" is +Inf;`:            {NoMedian: true},
	} {
		bad := rows
		switch {
		case o.WeightCol != "":
			bad = []predicted{{1, 1, math.NaN()}}
		case o.NoMedian:
			bad = []predicted{{math.Inf(1), 1, 1}}
		}
		o.LabelCol = "label"
		if o.PredictionCol == "" {
			o.PredictionCol = "prediction"
		}
		requireFailure(t, bad, regression(o), text)
	}
	require.Error(t, second(evaluate.MeasureRegression(numberLabel, numberGuess[1:], nil, evaluate.RegressionOptions{})))
	require.Error(t, second(evaluate.MeasureRegression([]float64{1}, []float64{math.NaN()}, nil, evaluate.RegressionOptions{})))
	require.Error(t, second(evaluate.MeasureRegression(nil, nil, nil, evaluate.RegressionOptions{Quantile: 2})))
	// An error that exceeds float64 must not cause a panic.
	r := must(evaluate.MeasureRegression([]float64{math.MaxFloat64, 1}, []float64{-math.MaxFloat64, 1}, nil, evaluate.RegressionOptions{}))
	require.True(t, math.IsNaN(r.MSE))
	require.Contains(t, strings.Join(r.Undefined, "\n"), "mse: an intermediate sum exceeds the range of float64")
}
