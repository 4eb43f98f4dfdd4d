package tree

// Dependence writes to out the partial dependence of the ensemble's scores on the given
// features. points has a value for each of these features, point after point. For each point,
// Dependence sets the features to the point in all n rows of x, and writes the mean score of
// these rows to out, one value for each output. n must be at least 1. The points are divided
// among threads goroutines, as the rows are in Dense. Each thread takes memory for 64 rows.
func (s *Scorer) Dependence(x []float64, n int, features []int, points, out []float64, threads int) {
	if len(features) == 0 {
		return
	}
	d, k := len(s.e.Features), s.e.Outputs
	split(len(points)/len(features), 1, threads, func(from, to int) {
		rows, scores := make([]float64, min(n, lanes)*d), make([]float64, min(n, lanes)*k)
		for p := from; p < to; p++ {
			point := points[p*len(features):][:len(features)]
			sums := out[p*k:][:k]
			clear(sums)
			for first := 0; first < n; first += lanes {
				some := min(n-first, lanes)
				copy(rows, x[first*d:(first+some)*d])
				for i := range some {
					for j, f := range features {
						rows[i*d+f] = point[j]
					}
				}
				s.Dense(rows, some, scores, 1)
				for i, v := range scores[:some*k] {
					sums[i%k] += v
				}
			}
			for o := range sums {
				sums[o] /= float64(n)
			}
		}
	})
}

// Expect writes to out, for each output, the expected score of a row of which only the features
// in known are known. At a node that splits on an unknown feature, the expectation is the mean
// of both children, weighted by their covers. Expect is the worth function of the game whose
// Shapley values Explainer.Values computes.
func (x *Explainer) Expect(row []float64, known []bool, out []float64) {
	if x.single != nil {
		x.single.expectKnown(row, known, out)
	} else {
		x.double.expectKnown(row, known, out)
	}
}

// Dependence computes partial dependence from covers instead of rows. points has a value for
// each of the given features, point after point. For each point, Dependence writes to out what
// Expect writes for a row with the values of the point, of which only the given features are
// known. It is far faster than Scorer.Dependence, but assumes that the features on a path are
// independent. The points are divided among threads goroutines.
func (x *Explainer) Dependence(features []int, points, out []float64, threads int) {
	if len(features) == 0 {
		return
	}
	known := make([]bool, len(x.e.Features))
	for _, f := range features {
		known[f] = true
	}
	k := x.e.Outputs
	split(len(points)/len(features), 1, threads, func(from, to int) {
		row := make([]float64, len(x.e.Features))
		for p := from; p < to; p++ {
			for j, f := range features {
				row[f] = points[p*len(features)+j]
			}
			x.Expect(row, known, out[p*k:][:k])
		}
	})
}

// expectKnown visits all paths that are possible for the known features.
func (x *explained[K]) expectKnown(row []float64, known []bool, out []float64) {
	w := x.takeWork()
	src := source{x64: row}
	x.fill(&src, 0, w.keys, 1)
	type way struct {
		at    int32
		share float64
	}
	sums := out[:x.e.Outputs]
	clear(sums)
	var open []way
	for t := range x.tops {
		open = append(open[:0], way{x.tops[t].root, 1})
		for len(open) > 0 {
			at, share := open[len(open)-1].at, open[len(open)-1].share
			open = open[:len(open)-1]
			left := x.links[at].left
			switch {
			case left == at:
				x.eachValue(t, at, func(o int, v float64) { sums[o] += float64(share * v) })
			case known[x.feature(at)]:
				open = append(open, way{left + x.turn(w.keys, at), share})
			default:
				open = append(open, way{left + 1, float64(share * x.shares[left+1])}, way{left, float64(share * x.shares[left])})
			}
		}
	}
	for o := range sums {
		if x.e.Average && x.weights[o] > 0 {
			sums[o] /= x.weights[o]
		}
		sums[o] = x.e.Base[o] + sums[o]
	}
	x.giveWork(w)
}
