package rows

// Moments has the total weight of a list of numbers, their weighted mean, and the weighted sum
// of their squared deviations from the mean.
type Moments struct{ Weight, Mean, Squares float64 }

// Merge returns the moments of the numbers of m and o together (Chan, Golub and LeVeque,
// Algorithms for computing the sample variance, The American Statistician 37, 1983).
func (m Moments) Merge(o Moments) Moments {
	total := m.Weight + o.Weight
	if !(total > 0) {
		return Moments{}
	}
	apart := o.Mean - m.Mean
	return Moments{
		Weight:  total,
		Mean:    m.Mean + float64(apart*(o.Weight/total)),
		Squares: m.Squares + o.Squares + float64(float64(apart*apart)*float64(m.Weight*(o.Weight/total))),
	}
}

// MomentsOf returns the moments of the numbers x. If weight is nil, all weights are 1. Squares
// is computed by the corrected two-pass algorithm.
func MomentsOf(x, weight []float64) Moments {
	var m Moments
	at := func(i int) float64 {
		if weight == nil {
			return 1
		}
		return weight[i]
	}
	var sum float64
	for i, v := range x {
		m.Weight += at(i)
		sum += float64(at(i) * v)
	}
	if !(m.Weight > 0) {
		return Moments{}
	}
	m.Mean = sum / m.Weight
	var rest float64
	for i, v := range x {
		t := v - m.Mean
		wt := float64(at(i) * t)
		rest += wt
		m.Squares += float64(wt * t)
	}
	shift := rest / m.Weight
	m.Mean += shift
	m.Squares = max(0, m.Squares-float64(shift*rest))
	return m
}
