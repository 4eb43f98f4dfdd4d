package forest

import (
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// sums has sums over rows. For a regression and for two classes these are the sums of g and w
// in scaled. For more classes only w is used; the weights of the classes are stored elsewhere.
// n is the number of rows.
type sums struct {
	g, w int64
	n    int
}

func (s sums) plus(o sums) sums  { return sums{s.g + o.g, s.w + o.w, s.n + o.n} }
func (s sums) minus(o sums) sums { return sums{s.g - o.g, s.w - o.w, s.n - o.n} }

// scorer computes a score of how pure a node is. The larger the sum of the scores of two
// children, the smaller their impurity:
//
//	Gini, Variance   g²/w       for two classes, and for numbers
//	Gini             Σ c²/w     for the weights c of several classes
//	Entropy          Σ c·ln c − w·ln w
//	Poisson          g·ln(g/w)
//
// The arguments are sums of the integers in scaled. Multiplication by unit turns a difference
// of scores into a difference of the criterion over weighted rows.
type scorer struct {
	criterion Criterion
	unit      float64
	// logs[x] is x·ln x, for small x.
	logs []float64
}

// smallLogs is the number of values of x·ln x in logs.
const smallLogs = 1 << 14

func newScorer(c Criterion, t *table) scorer {
	s := scorer{criterion: c, unit: t.wUnit}
	switch {
	case c == Variance:
		s.unit = min(t.gUnit/t.wUnit*t.gUnit, math.MaxFloat64)
	case c == Poisson:
		s.unit = t.gUnit
	case c == Gini && t.classes <= 2:
		s.unit = 2 * t.wUnit
	}
	if c == Entropy {
		s.logs = make([]float64, smallLogs)
		for x := 1; x < smallLogs; x++ {
			s.logs[x] = float64(x) * kernel.Log(float64(x))
		}
	}
	return s
}

// xlogx returns x·ln x.
func (s *scorer) xlogx(x int64) float64 {
	if x < int64(len(s.logs)) {
		return s.logs[x]
	}
	return float64(x) * kernel.Log(float64(x))
}

// pair returns the score of a node of a regression or of two classes; w must be above 0. The
// score -Inf means that such a node is not allowed.
func (s *scorer) pair(g, w int64) float64 {
	switch s.criterion {
	case Entropy:
		return s.xlogx(g) + s.xlogx(w-g) - s.xlogx(w)
	case Poisson:
		if g <= 0 {
			return math.Inf(-1)
		}
		return float64(g) * kernel.Log(float64(g)/float64(w))
	}
	x := float64(g)
	return float64(x*x) / float64(w)
}

// counts returns the score of a node whose classes have the given weights, whose sum w is above
// 0.
func (s *scorer) counts(counts []int64, w int64) float64 {
	var sum float64
	if s.criterion == Entropy {
		for _, c := range counts {
			sum += s.xlogx(c)
		}
		return sum - s.xlogx(w)
	}
	for _, c := range counts {
		x := float64(c)
		sum += float64(x * x)
	}
	return sum / float64(w)
}

// rest returns the score of the sibling of a node with the weights counts. The sibling's
// classes have the weights total − counts.
func (s *scorer) rest(total, counts []int64, w int64) float64 {
	var sum float64
	if s.criterion == Entropy {
		for k, c := range counts {
			sum += s.xlogx(total[k] - c)
		}
		return sum - s.xlogx(w)
	}
	for k, c := range counts {
		x := float64(total[k] - c)
		sum += float64(x * x)
	}
	return sum / float64(w)
}
