package fixedmath_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/fixedmath"
)

// The example computes the loss and the gradient of logistic regression for one row with label
// ±1. The results have the same bits on every machine.
func Example() {
	score, label := 1.5, -1.0
	margin := label * score
	loss := fixedmath.Softplus(-margin)
	slope := -label * fixedmath.Sigmoid(-margin)
	fmt.Printf("loss %.6f, d loss/d score %.6f\n", loss, slope)
	// Output: loss 1.701413, d loss/d score 0.817574
}

// A test can compare the bits of a result with a constant.
func ExampleExp() {
	fmt.Printf("%#x\n", math.Float64bits(fixedmath.Exp(1)))
	// Output: 0x4005bf0a8b145769
}

func TestEachFunctionIsItself(t *testing.T) {
	for x := -3.0; x <= 3; x += 0.125 {
		const eps = 1e-14
		require.InEpsilon(t, math.Exp(x), fixedmath.Exp(x), eps)
		require.InDelta(t, math.Expm1(x), fixedmath.Expm1(x), eps*30)
		require.InDelta(t, math.Tanh(x), fixedmath.Tanh(x), eps)
		require.InEpsilon(t, 1/(1+math.Exp(-x)), fixedmath.Sigmoid(x), eps)
		require.InEpsilon(t, math.Log1p(math.Exp(x)), fixedmath.Softplus(x), eps)
		if x > 0 {
			require.InDelta(t, math.Log(x), fixedmath.Log(x), eps)
			require.InEpsilon(t, math.Log1p(x), fixedmath.Log1p(x), eps)
			require.InEpsilon(t, math.Pow(x, 2.5), fixedmath.Pow(x, 2.5), eps)
		}
	}
}
