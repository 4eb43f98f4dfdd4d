package engine_test

import (
	"context"
	"fmt"

	"github.com/superstep-ml/superstep/engine"
)

// A misuse does not stop the job's function: Run returns all misuses together.
func ExampleBuildError() {
	wrong := engine.Define("wrong", func(b *engine.Builder, _ struct{}) error {
		engine.Collect(evens(b, 1), "numbers")
		engine.Collect(evens(b, 2), "numbers")
		b.Add(engine.Spec{Op: "Nothing"})
		return nil
	})
	_, err := engine.Run(context.Background(), wrong, struct{}{})
	fmt.Println(err)
	// Output:
	// job "wrong": 2 errors:
	//   example_misuse_test.go:14: Collect: the name "numbers" is taken by the result collected at example_misuse_test.go:13
	//   example_misuse_test.go:15: Nothing: want either a source or an operator
}
