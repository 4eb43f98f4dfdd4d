package objective_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// naive is the definition of a loss as a function of margins m, a label y and seen, which is 1
// if the event was observed.
type naive func(m []float64, y, seen float64) float64

// kind is a loss, with its definition and a function that draws labels for it.
type kind struct {
	loss   objective.Loss
	naive  naive
	label  func(u float64) float64 // returns a label for a uniform random number u
	k      int                     // number of margins
	kinked bool                    // whether the first derivative of the loss has jumps
}

// spread returns the range in which margins are drawn. The range is small for AFT, because its
// loss has exponentials of exponentials.
func (l kind) spread() float64 {
	if l.k == 2 {
		return 0.5
	}
	return 3
}

func class(u float64) float64  { return math.Floor(2 * u) }
func number(u float64) float64 { return 4*u - 2 }
func count(u float64) float64  { return math.Floor(5 * u * u) }
func time(u float64) float64   { return 0.1 + 3*u }
func ofSign(y float64) float64 { return 2*y - 1 }
func square(v float64) float64 { return v * v }

// kinds returns all losses.
func kinds() []kind {
	return []kind{
		{objective.Squared{}, func(m []float64, y, _ float64) float64 { return square(m[0]-y) / 2 }, number, 1, false},
		{objective.Logistic{}, func(m []float64, y, _ float64) float64 { return math.Log1p(math.Exp(-ofSign(y) * m[0])) }, class, 1, false},
		{objective.Softmax{K: 4}, naiveSoftmax, func(u float64) float64 { return math.Floor(4 * u) }, 4, false},
		{objective.Hinge{}, func(m []float64, y, _ float64) float64 { return math.Max(0, 1-ofSign(y)*m[0]) }, class, 1, true},
		{objective.SquaredHinge{}, func(m []float64, y, _ float64) float64 { return square(math.Max(0, 1-ofSign(y)*m[0])) }, class, 1, false},
		{objective.EpsilonInsensitive{Epsilon: 0.3}, func(m []float64, y, _ float64) float64 { return math.Max(0, math.Abs(m[0]-y)-0.3) }, number, 1, true},
		{objective.SquaredEpsilonInsensitive{Epsilon: 0.3}, func(m []float64, y, _ float64) float64 { return square(math.Max(0, math.Abs(m[0]-y)-0.3)) }, number, 1, false},
		{objective.Huber{Delta: 0.7}, naiveHuber, number, 1, false},
		{objective.Quantile{Q: 0.2}, func(m []float64, y, _ float64) float64 { return math.Max(0.2*(y-m[0]), -0.8*(y-m[0])) }, number, 1, true},
		{objective.Poisson{}, naivePoisson, count, 1, false},
		{objective.Gamma{}, func(m []float64, y, _ float64) float64 { return y*math.Exp(-m[0]) + m[0] - math.Log(y) - 1 }, time, 1, false},
		{objective.Tweedie{Power: 1.3}, naiveTweedie, count, 1, false},
		{objective.Perceptron{}, func(m []float64, y, _ float64) float64 { return math.Max(0, -ofSign(y)*m[0]) }, class, 1, true},
		{objective.AFT{}, naiveAFT, time, 2, false},
		{objective.Smooth{Loss: objective.Hinge{}, Mu: 0.5}, smoothed(0, 1, 0, func(m, y float64) float64 { return 1 - ofSign(y)*m }), class, 1, false},
		{objective.Smooth{Loss: objective.EpsilonInsensitive{Epsilon: 0.3}, Mu: 0.5}, smoothed(-1, 1, 0.3, func(m, y float64) float64 { return y - m }), number, 1, false},
		{objective.Smooth{Loss: objective.Quantile{}, Mu: 0.5}, smoothed(-0.5, 0.5, 0, func(m, y float64) float64 { return y - m }), number, 1, false},
	}
}

func naiveSoftmax(m []float64, y, _ float64) float64 {
	var sum float64
	for _, v := range m {
		sum += math.Exp(v)
	}
	return math.Log(sum) - m[int(y)]
}

func naiveHuber(m []float64, y, _ float64) float64 {
	r := math.Abs(m[0] - y)
	if r <= 0.7 {
		return r * r / 2
	}
	return 0.7*r - 0.7*0.7/2
}

func naivePoisson(m []float64, y, _ float64) float64 {
	constant := 0.0
	if y > 0 {
		constant = y*math.Log(y) - y
	}
	return math.Exp(m[0]) - y*m[0] + constant
}

func naiveTweedie(m []float64, y, _ float64) float64 {
	mu := math.Exp(m[0])
	return math.Pow(y, 0.7)/((1-1.3)*0.7) - y*math.Pow(mu, -0.3)/-0.3 + math.Pow(mu, 0.7)/0.7
}

func naiveAFT(m []float64, y, seen float64) float64 {
	sigma := math.Exp(m[1])
	z := (math.Log(y) - m[0]) / sigma
	return math.Exp(z) - seen*(z-m[1])
}

// smoothed returns a naive Smooth loss, which computes the maximum over a grid of α.
func smoothed(lo, hi, epsilon float64, r func(m, y float64) float64) naive {
	return func(m []float64, y, _ float64) float64 {
		best := math.Inf(-1)
		for i := range 20001 {
			alpha := lo + (hi-lo)*float64(i)/20000
			best = math.Max(best, alpha*r(m[0], y)-epsilon*math.Abs(alpha)-0.25*alpha*alpha)
		}
		return best
	}
}

// batchOf returns a batch of rows with buffers for all results.
func batchOf(margin, label, censor []float64, k int) *objective.Batch {
	n := len(label)
	return &objective.Batch{
		N: n, K: k, Label: label, Censor: censor, Margin: margin,
		Loss: make([]float64, n), Slope: make([]float64, n*k), Curve: make([]float64, n*k*(k+1)/2), Work: make([]float64, n*k),
	}
}

func TestLossesAreWhatTheirDefinitionsSay(t *testing.T) {
	const n = 60
	for _, l := range kinds() {
		t.Run(fmt.Sprint(l.loss), func(t *testing.T) {
			r := sharding.NewRandom(5, l.loss.String(), 0, 0)
			margin, label, censor := make([]float64, n*l.k), make([]float64, n), make([]float64, n)
			for i := range n {
				label[i] = l.label(r.Float64())
				censor[i] = class(r.Float64())
				require.Empty(t, l.loss.Refuses(label[i]))
			}
			for i := range margin {
				margin[i] = l.spread() * r.NormFloat64()
			}
			b := batchOf(margin, label, censor, l.k)
			l.loss.At(b)
			for i := range n {
				m := margin[i*l.k : (i+1)*l.k]
				want := l.naive(m, label[i], censor[i])
				require.InDelta(t, want, b.Loss[i], 1e-9*(1+math.Abs(want)), "row %d", i)
			}
			checkDerivatives(t, l, b)
		})
	}
}

// checkDerivatives compares slopes and curvatures with central differences of losses and
// slopes.
func checkDerivatives(t *testing.T, l kind, b *objective.Batch) {
	const h = 1e-5
	for a := range l.k {
		moved := func(by float64) *objective.Batch {
			m := append([]float64(nil), b.Margin...)
			for i := range b.N {
				m[i*l.k+a] += by
			}
			c := batchOf(m, b.Label, b.Censor, l.k)
			l.loss.At(c)
			return c
		}
		up, down := moved(h), moved(-h)
		for i := range b.N {
			slope := b.Slope[i*l.k+a]
			require.InDelta(t, (up.Loss[i]-down.Loss[i])/(2*h), slope, 1e-4*(1+math.Abs(slope)), "slope of row %d by margin %d", i, a)
			for c := range a + 1 {
				curve := b.Curve[(a*(a+1)/2+c)*b.N+i]
				require.InDelta(t, (up.Slope[i*l.k+c]-down.Slope[i*l.k+c])/(2*h), curve, 1e-4*(1+math.Abs(curve)), "curvature of row %d by %d and %d", i, a, c)
			}
		}
	}
}

func TestBatchesOfAnyLengthGiveTheSameBits(t *testing.T) {
	for _, l := range kinds() {
		r := sharding.NewRandom(6, l.loss.String(), 0, 0)
		const n = 9
		margin, label := make([]float64, n*l.k), make([]float64, n)
		for i := range margin {
			margin[i] = 5 * r.NormFloat64()
		}
		for i := range label {
			label[i] = l.label(r.Float64())
		}
		whole := batchOf(margin, label, nil, l.k)
		l.loss.At(whole)
		for i := range n {
			one := batchOf(margin[i*l.k:(i+1)*l.k], label[i:i+1], nil, l.k)
			l.loss.At(one)
			require.Equal(t, whole.Loss[i], one.Loss[0], "%v: the loss of a row must not depend on the batch", l.loss)
			require.Equal(t, whole.Slope[i*l.k:(i+1)*l.k], one.Slope, "%v: the slopes of a row must not depend on the batch", l.loss)
		}
	}
}

func TestTailsAreAccurate(t *testing.T) {
	// At margin 50 the probability of the other class is exp(−50)/(1+exp(−50)). It would be
	// lost by rounding if it were computed as 1 minus the probability of the class.
	tail := math.Exp(-50)
	b := batchOf([]float64{50, -50, 800, -800}, []float64{1, 1, 1, 1}, nil, 1)
	objective.Logistic{}.At(b)
	require.InEpsilon(t, tail, b.Loss[0], 1e-14)
	require.InEpsilon(t, -tail, b.Slope[0], 1e-14)
	require.InEpsilon(t, 50, b.Loss[1], 1e-15)
	require.InEpsilon(t, -1, b.Slope[1], 1e-15)
	require.Zero(t, b.Loss[2])
	require.Equal(t, 800.0, b.Loss[3])

	s := batchOf([]float64{50, 0, 0, 50, 1e4, -1e4}, []float64{0, 0, 1}, nil, 2)
	objective.Softmax{K: 2}.At(s)
	require.InEpsilon(t, tail, s.Loss[0], 1e-14)
	require.InEpsilon(t, -tail, s.Slope[0], 1e-14)
	require.InEpsilon(t, tail, s.Slope[1], 1e-14)
	require.InEpsilon(t, 50, s.Loss[1], 1e-14)
	require.Equal(t, 2e4, s.Loss[2])
	require.Equal(t, []float64{1, -1}, s.Slope[4:6])
}

func TestSoftmaxOfTheLiterature(t *testing.T) {
	// There are three classes; the last is the reference. The coefficients are 1 + 0.1·i, five
	// for each of the first two classes. The 100 rows have x_ij = j + 0.1·i and are all of
	// class 1. The penalty is 0.1·|w|₁ + 0.1·w·w.
	margin, label := make([]float64, 300), make([]float64, 100)
	for i := range 100 {
		label[i] = 1
		for j := range 5 {
			x := float64(j) + 0.1*float64(i)
			for c := range 2 {
				margin[i*3+c] += x * (1 + 0.1*float64(5*c+j))
			}
		}
	}
	b := batchOf(margin, label, nil, 3)
	objective.Softmax{}.At(b)
	var value float64
	for _, l := range b.Loss {
		value += l / 100
	}
	for i := range 10 {
		w := 1 + 0.1*float64(i)
		value += 0.1*w + 0.1*w*w
	}
	require.InDelta(t, 3.6353040351644808, value, 1e-14)
}

func TestLossesRefuseParameters(t *testing.T) {
	nan := math.NaN()
	two := &rows.Facts{Classes: []string{"a", "b"}, ClassWeights: []float64{1, 2}}
	for _, c := range []struct {
		loss objective.Loss
		text string
	}{
		{objective.Softmax{K: 1}, "softmax of 1 classes: the labels have 2"},
		{objective.Softmax{K: -1}, "want 2 or more"},
		{objective.EpsilonInsensitive{Epsilon: -1}, "epsilon is -1"},
		{objective.SquaredEpsilonInsensitive{Epsilon: nan}, "epsilon is NaN"},
		{objective.Huber{Delta: -2}, "delta of the huber loss is -2"},
		{objective.Huber{Delta: math.Inf(1)}, "delta of the huber loss is +Inf"},
		{objective.Quantile{Q: 1}, "the quantile is 1"},
		{objective.Tweedie{Power: 2}, "the power of the tweedie loss is 2"},
		{objective.Smooth{Loss: objective.Hinge{}, Mu: -1}, "the smoothing of the hinge loss is -1"},
		{objective.Smooth{Loss: objective.Quantile{Q: 3}}, "the quantile is 3"},
	} {
		_, err := c.loss.Shape(two)
		require.ErrorContains(t, err, c.text)
	}
	for _, l := range []objective.Loss{objective.Huber{}, objective.Quantile{}, objective.Tweedie{}, objective.Softmax{}, objective.Smooth{Loss: objective.Hinge{}}} {
		_, err := l.Shape(two)
		require.NoError(t, err)
	}
	for _, l := range []objective.Loss{objective.Logistic{}, objective.Softmax{}, objective.Hinge{}, objective.SquaredHinge{}, objective.Perceptron{}, objective.Smooth{Loss: objective.Hinge{}}} {
		_, err := l.Shape(&rows.Facts{Classes: []string{"only"}, ClassWeights: []float64{3}})
		require.ErrorContains(t, err, `every label is "only"`)
		_, err = l.Shape(&rows.Facts{Classes: []string{"a", "b"}, ClassWeights: []float64{3, 0}})
		require.ErrorContains(t, err, `every row of class "b" weighs 0`)
	}
	_, err := objective.Logistic{}.Shape(&rows.Facts{Classes: []string{"a", "b", "c"}, ClassWeights: []float64{3, 1, 1}})
	require.ErrorContains(t, err, "3 classes, and this loss takes two: a, b, c")
}

func TestLossesRefuseLabels(t *testing.T) {
	require.Contains(t, objective.Poisson{}.Refuses(-1), "negative")
	require.Empty(t, objective.Poisson{}.Refuses(0))
	require.Contains(t, objective.Gamma{}.Refuses(0), "want a number above 0")
	require.Contains(t, objective.AFT{}.Refuses(0), "want a number above 0")
	require.Contains(t, objective.Tweedie{}.Refuses(-0.5), "negative")
	require.Contains(t, objective.Smooth{Loss: objective.Quantile{}}.String(), "quantile")
}
