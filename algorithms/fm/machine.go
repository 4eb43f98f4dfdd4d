package fm

import "github.com/superstep-ml/superstep/internal/kernel"

// machine has d features with k factors each, and 1+d+d·k parameters: the intercept, a weight
// for each feature, and the factors of each feature. The margin of a row is
//
//	w0 + Σ w[j]·x[j] + ½·Σ over factors f of (s[f]² − Σ v[j,f]²·x[j]²)
//
// with s[f] = Σ v[j,f]·x[j]. The last term is the sum of the products of all pairs of different
// features, each weighted with the inner product of their factors. It is computed in k steps
// for each entry (Rendle, "Factorization Machines", ICDM 2010, lemma 3.1).
type machine struct {
	d, k       int
	parameters []float64
}

// margin returns the margin of a row. col lists the features that the row has; nil means all
// features. s has room for 2·k values. margin leaves s[f] of each factor f in the first half of
// s.
func (m *machine) margin(col []int32, val []float64, s []float64) float64 {
	clear(s)
	margin := m.parameters[0]
	for q, x := range val {
		j := q
		if col != nil {
			j = int(col[q])
		}
		if x != 0 {
			margin += m.addEntry(j, x, s)
		}
	}
	return margin + m.pairs(s)
}

// addEntry adds feature j of a row to the sums in the first half of s and to the sums of
// squares in the second half. It returns the linear term of the feature in the margin. Each
// factor has its own chain of additions, so that the processor runs them in parallel.
func (m *machine) addEntry(j int, x float64, s []float64) float64 {
	own := m.parameters[1+m.d+j*m.k : 1+m.d+(j+1)*m.k]
	sums, squares := s[:len(own)], s[len(own):2*len(own)]
	for f, v := range own {
		vx := float64(v * x)
		sums[f] += vx
		squares[f] += float64(vx * vx)
	}
	return float64(m.parameters[1+j] * x)
}

// pairs returns the part of the margin that comes from products of features. s is as margin
// left it.
func (m *machine) pairs(s []float64) float64 {
	var twice float64
	for f, v := range s[:m.k] {
		twice += float64(v*v) - s[m.k+f]
	}
	return float64(0.5 * twice)
}

// addGradient adds g times the gradient of a row's margin to out. s is as margin left it.
func (m *machine) addGradient(g float64, col []int32, val []float64, s, out []float64) {
	k := m.k
	s = s[:k]
	linear, factors := out[1:1+m.d], out[1+m.d:]
	out[0] += g
	for q, x := range val {
		j := q
		if col != nil {
			j = int(col[q])
		}
		if x == 0 {
			continue
		}
		gx := float64(g * x)
		linear[j] += gx
		own, to := m.parameters[1+m.d+j*k : 1+m.d+(j+1)*k][:len(s)], factors[j*k : (j+1)*k][:len(s)]
		for f, v := range own {
			to[f] += float64(gx * (s[f] - float64(v*x)))
		}
	}
}

// lossOf returns the loss of a row and the derivative of the loss with respect to the margin.
// The label of a classification is 0 or 1.
func lossOf(t Task, margin, label float64) (loss, slope float64) {
	if t == Regression {
		r := margin - label
		return float64(0.5 * float64(r*r)), r
	}
	if label > 0 {
		return kernel.Softplus(-margin), -kernel.Sigmoid(-margin)
	}
	return kernel.Softplus(margin), kernel.Sigmoid(margin)
}
