package kmeans

import "github.com/superstep-ml/superstep/internal/kernel"

// With Single precision, rows, centres and distances are float32, and sums are float64. A
// squared distance is a sum of d rounded squares of rounded differences in increasing feature
// order. So its relative error is at most (d+2)·2⁻²⁴. The inertia is computed in float64, from
// the root of each squared distance.

// roundSingle rounds values to float32 in place. It reports whether all of them are in the
// range of float32.
func roundSingle(values []float64) bool {
	ok := true
	for i, v := range values {
		values[i] = float64(float32(v))
		ok = ok && kernel.Finite(values[i])
	}
	return ok
}
