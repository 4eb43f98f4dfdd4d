// Package fixedmath provides elementary functions that return the same bits on every machine,
// for stages whose results must not depend on the machine.
//
// The results of a job of this engine have the same bits at any parallelism and on any machine
// of a cluster, as long as the functions that the job calls return the same bits on every
// machine. The functions of package math do not. On some processors they are written in
// assembly, and use fused multiply-add where the processor has it. The results of the portable
// versions depend on GOARCH and GOAMD64, because the compiler may fuse a multiplication with an
// addition. A model trained on a laptop would then differ in its last bits from the same model
// trained on a server, and every iteration enlarges such differences.
//
// The functions here use only additions, multiplications and divisions, each rounded to
// float64, and bit operations. Measured on amd64 they take between half and twice the time of
// the functions of the same names in math. The following errors are upper bounds in units in
// the last place (ulp). Tests check these bounds against high-precision arithmetic on random
// and difficult arguments. Where a result is subnormal, the bound is 1.1 ulp for all functions.
//
//	Exp 0.52 · Log 0.51 · Log1p 0.51 · Expm1 0.55 · Pow 0.52
//	Tanh 1.1 · Sigmoid 1.1 · Softplus 0.53
//
// The functions allocate nothing and may be called from any goroutine. A result that is NaN
// always has the bits of math.NaN().
//
// From package math these are safe to use as they are: Sqrt, Abs, Floor, Ceil, Trunc, Copysign,
// Min, Max, Ldexp, Frexp, Float64bits, Float64frombits, IsNaN and IsInf. In your own
// arithmetic, write a product that is added to z as float64(x*y) + z, because the conversion
// forbids the compiler to fuse the operations.
package fixedmath
