package trial

import "github.com/superstep-ml/superstep/internal/testsize"

// places are the places at which SameBits runs a job. The short list has the smallest number of
// places that differ in parallelism, workers and batch size. tests/samebits tries more places,
// with every estimator and operator.
var places = testsize.Of(
	[]place{{1, 0, 1024}, {3, 3, 7}},
	[]place{{1, 0, 1024}, {2, 0, 7}, {3, 3, 1024}, {8, 0, 1}},
)

// cuts returns the runs of SameBits in which queues are stopped and resumed. supersteps
// is the number of supersteps of the longest queue.
func cuts(supersteps int) []cutting {
	all := []cutting{afterEach(supersteps, 2, 1, 8, 3)}
	if !testsize.Soak {
		return all
	}
	all = append(all, afterEach(supersteps, 5), afterEach(supersteps, 1, 7))
	for _, at := range []int{1, 2, 3, supersteps / 2, supersteps - 1, supersteps} {
		if at < 1 {
			continue
		}
		for _, p := range []int{1, 2, 5, 8} {
			all = append(all, cutting{p: 3, at: map[int]int{at: p}})
		}
	}
	return all
}
