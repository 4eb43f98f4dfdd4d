package check_test

import (
	"fmt"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/check"
	"github.com/superstep-ml/superstep/collective/program"
)

func Example() {
	direct, _ := algorithm.Find(program.AllReduce, "direct")
	pr := algorithm.Params{P: 3}
	fmt.Println("direct:", check.Algorithm(direct, pr))

	// These programs are the same, except that rank 2 folds without waiting for one of the
	// pieces that it receives.
	programs, _ := check.Generate(direct, pr)
	fold := &programs[2].Lanes[0].Steps[0]
	fold.After = fold.After[1:]
	fmt.Println("hasty:", check.Programs(programs, check.Options{}) != nil)
	// Output:
	// direct: <nil>
	// hasty: true
}
