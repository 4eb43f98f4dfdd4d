// Package kernel holds the arithmetic that every algorithm shares: vector
// primitives, products of blocks of rows, the distance blocks of k-means, the
// element-wise operators of collectives, and elementary functions with fixed
// bits. It also has the small functions on numbers and slices that they all need: [Sized], [Finite],
// [NonFinite] and [Argmax].
//
// # The contract: one definition, the same bits everywhere
//
// Every floating-point result of this package is defined by a naive loop that its documentation
// states: which terms, in which order, each operation rounded separately. Faster code (several
// rows or centres at a time, pruned searches) computes each output by that same sequence of
// operations, so it vectorises across outputs and never within one. A search may also skip
// computations that provably cannot change its result; how it finds such computations is not
// part of the definition. It follows that
//
//   - the result for a row is a function of that row alone, never of its place
//     in a block, of the block's length or of a loop tail;
//   - results do not change with the processor, its features, GOAMD64 or
//     GOARCH: a product that is added to something is always written
//     T(x*y) + z, which forbids the compiler to fuse the two, and no function
//     of package math with a processor-specific form is called.
//
// Processors and compilers differ in which of two NaN operands an operation returns, and in the
// sign of a new NaN. So functions that return sums or inner products ([Dot], [DotRows],
// [DotCSR], [DotLeaves], [RowNorms], [SquaredDistance]) return a single kind of NaN, as [MaxTo]
// and [MinTo] do. Functions that add to the caller's values ([AddTo], [Axpy], [AddScaledRows]
// and the like) are steps of a fold: the code that ends the fold calls [OneNaN], as every
// reduction of package collective does, so that users see no other NaN.
//
// # Assembly
//
// On amd64 with AVX2 the inner loops run in assembly, which the module in the directory avo
// generates; loops bound by arithmetic use AVX-512 if it is available. The assembly keeps the
// contract by construction: the lanes of a register are different outputs (rows for [DotRows],
// columns for [AddScaledRows], centres for [Panels.To], arguments for [ExpTo]), and each lane
// goes through the operations of the pure Go form in the same order. No multiplication is fused
// with an addition, except in the scores by which [Assigner] avoids computing most distances: a
// score decides only where its rounding error cannot change the result. Special arguments of
// the elementary functions are left to the scalar form. Tests compare the assembly with the
// pure Go form, bit for bit. The pure Go form runs on other processors, under the race
// detector, and with
//
//	SUPERSTEP_DEBUG=kernel.asm=off
//
// in the environment when the process starts; kernel.asm=avx2 limits the assembly to AVX2. Each
// call of assembly is short, because the scheduler cannot preempt it.
//
// # Shapes and ownership
//
// Matrices are row-major: row i of x with d features is x[i*d : (i+1)*d]. Functions keep no
// reference to a slice they are given and allocate nothing unless they say so; destination and
// source must be the same slice or not overlap. The caller must pass slices of the right
// lengths: a slice shorter than its stated shape is a bug of the caller and panics like any
// index out of range. Values never cause a panic: NaN and infinities propagate according to
// IEEE 754, and each search documents how it treats NaN.
//
// # A superstep of k-means
//
//	nearest := kernel.NewAssigner[float64](k, d) // once per goroutine
//	nearest.Set(means)                           // once per superstep
//	inertia := nearest.Accumulate(x, n, nil, assign, sums, 0)
//
// after which sums holds, for each centre, d sums and the weight, ready to be
// reduced over shards.
package kernel
