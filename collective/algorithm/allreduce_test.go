package algorithm_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/check"
	"github.com/superstep-ml/superstep/collective/program"
)

func TestAllReducesAreProved(t *testing.T) {
	for _, a := range append(algorithm.For(program.AllReduce), algorithm.For(program.ReduceScatter)...) {
		t.Run(a.Collective.String()+"/"+a.Name, func(t *testing.T) {
			for p := 1; p <= 33; p++ {
				pr := algorithm.Params{P: p}
				if a.Supports(pr) != nil {
					continue
				}
				require.NoError(t, check.Algorithm(a, pr))
			}
		})
	}
}
