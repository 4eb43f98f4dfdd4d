package svm_test

import (
	"math"
	"strconv"
	"testing"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/svm"
	"github.com/superstep-ml/superstep/engine"
)

// classify trains a classifier on a table. Parameters p need not name the columns.
func classify(t testing.TB, table trial.Table, p svm.LinearSVC, options ...engine.Option) *svm.SVCModel {
	t.Helper()
	p = svcColumns(table, p)
	return trial.Train(t, func(b *engine.Builder) *engine.Dataset { return svm.TrainSVC(table.Dataset(b), p) }, svm.SVCModelOf, options...)
}

// regress trains a regression on a table. Parameters p need not name the columns.
func regress(t testing.TB, table trial.Table, p svm.LinearSVR) *svm.SVRModel {
	t.Helper()
	p = svrColumns(table, p)
	return trial.Train(t, func(b *engine.Builder) *engine.Dataset { return svm.TrainSVR(table.Dataset(b), p) }, svm.SVRModelOf)
}

func svcColumns(table trial.Table, p svm.LinearSVC) svm.LinearSVC {
	p.LabelCol = "label"
	if table.Weight != nil {
		p.WeightCol = "weight"
	}
	return p
}

func svrColumns(table trial.Table, p svm.LinearSVR) svm.LinearSVR {
	p.LabelCol = "label"
	if table.Weight != nil {
		p.WeightCol = "weight"
	}
	if table.Offset != nil {
		p.OffsetCol = "offset"
	}
	return p
}

// several returns n weighted rows of d features in k overlapping classes.
func several(n, d, k int) trial.Table {
	table := trial.Gaussian(uint64(n+k), n, d)
	for i := range n {
		x, class := table.Row(i), i%k
		x[class%d] += 1.2
		if class >= d {
			x[0] -= 2
		}
		table.Label = append(table.Label, float64(class))
		table.Weight = append(table.Weight, 0.5+float64(i%4)/2)
	}
	return table
}

// target returns n rows of d features. Labels depend on the features and have outliers.
func target(n, d int) trial.Table {
	table := trial.Gaussian(uint64(3*n+d), n, d)
	for i := range n {
		y := 2.0
		for j, x := range table.Row(i) {
			y += float64(j%3-1)*x + 0.3*math.Sin(float64(5*i+j))
		}
		if i%9 == 4 {
			y += 20
		}
		table.Label = append(table.Label, y)
		table.Weight = append(table.Weight, 1+float64(i%3))
	}
	return table
}

// fit has the parameters and the results of a model of scikit-learn.
type fit struct {
	C, Epsilon float64
	Rows       int
	Coef       [][]float64
	Intercept  []float64
}

func scikit(t testing.TB) map[string]fit {
	t.Helper()
	return trial.JSON[map[string]fit](t, "scikit-learn.json")
}

// loss returns the textbook loss of a margin. s is -1 or +1 if labels are classes, and 0 if
// labels are numbers.
func loss(s, y, margin, epsilon float64, squared bool) float64 {
	v := math.Max(0, math.Abs(margin-y)-epsilon)
	if s != 0 {
		v = math.Max(0, 1-s*margin)
	}
	if squared {
		v *= v
	}
	return v
}

// objective returns the mean weighted loss plus the penalty of coefficients of unscaled
// features, for one class against the rest. If class is -1, labels are numbers instead of
// classes.
func objective(table trial.Table, class int, classOf func(i int) int, w []float64, c, epsilon float64, squared bool, l2 float64) float64 {
	var sum, total float64
	for i := range table.N {
		margin, u, s, y := c, 1.0, 0.0, 0.0
		for j, x := range table.Row(i) {
			margin += w[j] * x
		}
		if table.Weight != nil {
			u = table.Weight[i]
		}
		if class >= 0 {
			s = -1
			if classOf(i) == class {
				s = 1
			}
		} else {
			y = table.Label[i]
		}
		sum += u * loss(s, y, margin, epsilon, squared)
		total += u
	}
	sum /= total
	for _, v := range w {
		sum += l2 / 2 * v * v
	}
	return sum
}

// trim returns a label as a text, in the format of Classes.Values.
func trim(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
