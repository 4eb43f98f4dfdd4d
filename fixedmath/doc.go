// Package fixedmath has elementary functions for stages whose results must have the same bits
// everywhere.
//
// A job of this engine gives the same bits at any parallelism and on any machine of a cluster,
// as long as the functions that it runs give the same bits. The functions of package math do
// not. On some processors they are assembly, with fused multiply-add where the processor has
// it. The portable versions change with GOARCH and GOAMD64, because the compiler may fuse a
// product with a sum. A model trained on a laptop would then differ in its last bits from the
// same model trained on a server, and every iteration enlarges such differences.
//
// The functions here use only additions, multiplications and divisions, each rounded to
// float64, and bit operations. Measured on amd64 they cost between half and twice as much as
// their namesakes in math. Each error below is an upper bound in units in the last place (ulp).
// Tests check it against high-precision arithmetic on random and difficult arguments. Where a
// result is subnormal, the bound is 1.1 ulp for all functions.
//
//	Exp 0.52 · Log 0.51 · Log1p 0.51 · Expm1 0.55 · Pow 0.52
//	Tanh 1.1 · Sigmoid 1.1 · Softplus 0.53
//
// The functions allocate nothing and may be called from any goroutine. A result that is NaN
// always has the bits of math.NaN().
//
// From package math these are safe to use as they are: Sqrt, Abs, Floor, Ceil, Trunc, Copysign,
// Min, Max, Ldexp, Frexp, Float64bits, Float64frombits, IsNaN and IsInf. In your own
// arithmetic, write a product that is added to something as float64(x*y) + z: the conversion
// forbids fusing.
package fixedmath
