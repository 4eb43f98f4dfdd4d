package kernel_test

import (
	"fmt"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// Two supersteps of k-means on four points of the plane.
func Example() {
	const n, d, k = 4, 2, 2
	x := []float64{0, 0, 0, 1, 8, 8, 9, 8}
	means := []float64{0, 0, 1, 1}
	nearest := kernel.NewAssigner[float64](k, d)
	assign := make([]int32, n)
	for step := range 2 {
		nearest.Set(means)
		sums := make([]float64, k*(d+1))
		inertia := nearest.Accumulate(x, n, nil, assign, sums, 0)
		for a := range k {
			s := sums[a*(d+1) : (a+1)*(d+1)]
			means[a*d], means[a*d+1] = s[0]/s[d], s[1]/s[d]
		}
		fmt.Println(step+1, assign, inertia)
	}
	fmt.Println(means)
	// Output:
	// 1 [0 0 1 1] 212
	// 2 [0 0 1 1] 1
	// [0 0.5 8.5 8]
}
