package trial

import "github.com/superstep-ml/superstep/internal/testsize"

// places are the fewest that differ in everything: parallelism, workers and batches.
// tests/samebits tries more of them, with every estimator and operator.
var places = testsize.Of(
	[]place{{1, 0, 1024}, {3, 3, 7}},
	[]place{{1, 0, 1024}, {2, 0, 7}, {3, 3, 1024}, {8, 0, 1}},
)

// cuts are the runs of SameBitsOfState in which queues are cut.
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
