package fixedmath

import "github.com/superstep-ml/superstep/internal/kernel"

// Exp returns e^x.
//
//	Exp(+Inf) = +Inf; Exp(-Inf) = 0; Exp(NaN) = NaN
func Exp(x float64) float64 { return kernel.Exp(x) }

// Log returns the natural logarithm of x.
//
//	Log(+Inf) = +Inf; Log(±0) = -Inf; Log(x < 0) = NaN; Log(NaN) = NaN
func Log(x float64) float64 { return kernel.Log(x) }

// Log1p returns log(1+x), accurate for x near 0.
//
//	Log1p(+Inf) = +Inf; Log1p(±0) = ±0; Log1p(-1) = -Inf; Log1p(x < -1) = NaN;
//	Log1p(NaN) = NaN
func Log1p(x float64) float64 { return kernel.Log1p(x) }

// Expm1 returns e^x - 1, accurate for x near 0.
//
//	Expm1(+Inf) = +Inf; Expm1(-Inf) = -1; Expm1(±0) = ±0; Expm1(NaN) = NaN
func Expm1(x float64) float64 { return kernel.Expm1(x) }

// Pow returns x to the power of y, with the special cases of IEEE 754, as in math.Pow.
func Pow(x, y float64) float64 { return kernel.Pow(x, y) }

// Tanh returns the hyperbolic tangent of x.
//
//	Tanh(±Inf) = ±1; Tanh(±0) = ±0; Tanh(NaN) = NaN
func Tanh(x float64) float64 { return kernel.Tanh(x) }

// Sigmoid returns the logistic function 1/(1+e^-x), accurate in both tails and
// without overflow.
//
//	Sigmoid(+Inf) = 1; Sigmoid(-Inf) = 0; Sigmoid(NaN) = NaN
func Sigmoid(x float64) float64 { return kernel.Sigmoid(x) }

// Softplus returns log(1+e^x), accurate in both tails and without overflow. Softplus(x) is the
// logistic loss of the margin -x.
//
//	Softplus(+Inf) = +Inf; Softplus(-Inf) = 0; Softplus(NaN) = NaN
func Softplus(x float64) float64 { return kernel.Softplus(x) }
