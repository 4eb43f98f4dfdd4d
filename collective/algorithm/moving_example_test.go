package algorithm_test

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/check"
	"github.com/superstep-ml/superstep/collective/program"
)

// A generator makes the program of one rank. The checker makes the programs of all ranks and
// proves that together they carry out the collective.
func Example_broadcast() {
	a, err := algorithm.Find(program.Broadcast, "binomial")
	if err != nil {
		panic(err)
	}
	pr := algorithm.Params{P: 8, Root: 5}
	fmt.Println(a.Generate(pr, 0))
	fmt.Println("steps:", a.Cost(pr).Steps, "error:", check.Algorithm(a, pr))

	// Output:
	// program broadcast binomial p=8 rank=0 root=5 chunks=1
	// in [0:0] out [0]
	// lane 0 recv=5 channel=0
	//   0 recv out[0]
	// lane 1 send=2 channel=0
	//   0 send out[0] after 0.0
	// lane 2 send=1 channel=0
	//   0 send out[0] after 0.0
	//
	// steps: 3 error: <nil>
}
