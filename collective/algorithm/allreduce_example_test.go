package algorithm_test

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
)

// This prints the costs of the algorithms for an AllReduce of 1024 elements among 16 ranks: the
// length of the longest chain of messages that wait for each other, and the number of elements
// that rank 0 sends.
func Example_costs() {
	pr := algorithm.Params{P: 16}
	for _, a := range algorithm.For(program.AllReduce) {
		if a.Supports(pr) != nil {
			continue
		}
		cost := a.Cost(pr)
		chunks := a.Generate(pr, 0).Chunks
		fmt.Printf("%-18s %2d %6d\n", a.Name, cost.Steps, cost.Sent(0, program.Even(1024, chunks)))
	}
	// Output:
	// direct              2   1920
	// linear              2  15360
	// allgather-reduce    1  15360
	// recursive-doubling  4   4096
	// halving-doubling    8   1920
	// binomial            8   4096
	// double-tree         8   1024
	// ring               30   1920
	// torus              12   1920
	// hierarchical       14   3840
	// blueconnect         8   1920
	// binary-blocks       8   1920
}
