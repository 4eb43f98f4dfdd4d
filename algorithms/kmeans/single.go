package kmeans

import (
	"math"
)

// Single precision: rows, centres and distances are float32, sums float64. A squared
// distance is a sum of d rounded squares of rounded differences in increasing feature
// order, so that its relative error is at most (d+2)·2⁻²⁴; its root enters the inertia
// in float64.

// newSinglePruner is newPruner for rows of float32.
func newSinglePruner(k, d, groups int) *pruner[float32] {
	p := preparePruner(k, d, groups, func(k int) distances[float32] { return newPanels[float32](k, d) })
	p.add = accumulateSingle
	return p
}

// accumulateSingle is kernel.AccumulateCentroids for rows of float32.
func accumulateSingle(x []float32, n, d int, w []float64, near []int32, sums []float64) {
	for i, a := range near[:n] {
		s := sums[int(a)*(d+1) : int(a)*(d+1)+d+1]
		row := x[i*d : i*d+d]
		if w != nil {
			s[d] += w[i]
			for j, v := range row {
				s[j] += float64(w[i] * float64(v))
			}
			continue
		}
		s[d]++
		s = s[:d]
		for len(row) >= 4 && len(s) >= 4 {
			s[0] += float64(row[0])
			s[1] += float64(row[1])
			s[2] += float64(row[2])
			s[3] += float64(row[3])
			s, row = s[4:], row[4:]
		}
		for j, v := range row {
			s[j] += float64(v)
		}
	}
}

// singleSearch finds the nearest of k centres for rows of float32 by computing every
// distance, as initialising needs it.
type singleSearch struct {
	centers []float32
	panels  *panels[float32]
	out     []float32
}

func newSingleSearch(k, d int) *singleSearch {
	return &singleSearch{centers: make([]float32, k*d), panels: newPanels[float32](k, d), out: make([]float32, k)}
}

func (s *singleSearch) set(centers []float64) {
	for i, v := range centers[:len(s.centers)] {
		s.centers[i] = float32(v)
	}
	s.panels.set(s.centers)
}

// assign writes the nearest centre and the distance to it for n rows.
func (s *singleSearch) assign(x []float32, n int, near []int32, dist []float64) {
	d := s.panels.d
	for i := range n {
		s.panels.to(x[i*d:(i+1)*d], s.out)
		least, at := s.out[0], 0
		for a, v := range s.out {
			if v < least {
				least, at = v, a
			}
		}
		near[i], dist[i] = int32(at), math.Sqrt(float64(least))
	}
}

// roundSingle rounds values to float32 in place. It reports whether all of them are in
// its range.
func roundSingle(values []float64) bool {
	ok := true
	for i, v := range values {
		values[i] = float64(float32(v))
		ok = ok && finite(values[i])
	}
	return ok
}
