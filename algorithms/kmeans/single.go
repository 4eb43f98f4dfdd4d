package kmeans

import (
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// Single precision: rows, centres and distances are float32, sums float64. A squared
// distance is a sum of d rounded squares of rounded differences in increasing feature
// order, so that its relative error is at most (d+2)·2⁻²⁴; its root enters the inertia
// in float64.

// newSinglePruner is newPruner for rows of float32.
func newSinglePruner(k, d, groups int) *pruner[float32] {
	p := preparePruner[float32](k, d, groups)
	p.add = kernel.AccumulateCentroids32
	return p
}

// singleSearch finds the nearest of k centres for rows of float32 by computing every
// distance, as initialising needs it.
type singleSearch struct {
	centers []float32
	panels  *kernel.Panels[float32]
	out     []float32
}

func newSingleSearch(k, d int) *singleSearch {
	return &singleSearch{centers: make([]float32, k*d), panels: kernel.NewPanels[float32](k, d), out: make([]float32, k)}
}

func (s *singleSearch) set(centers []float64) {
	for i, v := range centers[:len(s.centers)] {
		s.centers[i] = float32(v)
	}
	s.panels.Set(s.centers)
}

// assign writes the nearest centre and the distance to it for n rows.
func (s *singleSearch) assign(x []float32, n int, near []int32, dist []float64) {
	d := s.panels.D()
	for i := range n {
		s.panels.To(x[i*d:(i+1)*d], s.out)
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
