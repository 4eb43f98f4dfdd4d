// Package kernel holds the arithmetic that every algorithm shares: vector
// primitives, products of blocks of rows, the distance blocks of k-means, the
// element-wise operators of collectives, and elementary functions with fixed
// bits.
//
// # The contract: one definition, the same bits everywhere
//
// Every floating-point result of this package is defined by a naive loop that
// its documentation states: which terms, in which order, each operation
// rounded separately. Faster code (several rows or centres at a time, pruned
// searches) computes each output by that same sequence of operations, so it
// vectorises across outputs and never within one. A search may also leave out
// what provably cannot change its result; how it finds that is no part of the
// definition. It follows that
//
//   - the result for a row is a function of that row alone, never of its place
//     in a block, of the block's length or of a loop tail;
//   - results do not change with the processor, its features, GOAMD64 or
//     GOARCH: a product that is added to something is always written
//     T(x*y) + z, which forbids the compiler to fuse the two, and no function
//     of package math with a processor-specific form is called.
//
// Which of two NaN an operation gives, and with what sign one begins, processors and
// compilers choose differently. So functions that return sums or inner products ([Dot],
// [Sum], [DotRows], [DotCSR], [DotLeaves], [RowNorms], [SquaredDistances]) give one NaN, as
// [MaxTo] and [MinTo] do. Those that add to what the caller has ([AddTo], [Axpy],
// [AddScaledRows] and the like) are steps of a fold: who ends it calls [OneNaN], as every
// reduction of package collective does, so that no other NaN is seen.
//
// # Assembly
//
// On amd64 with AVX2 the inner loops run in assembly, which the module in the
// directory avo generates; those bound by
// arithmetic use AVX-512 where it is. It keeps the contract by construction: the lanes of a
// register are different outputs (rows for [DotRows], columns for
// [AddScaledRows], centres for [SquaredDistances], arguments for [ExpTo]), each
// goes through the operations of the pure Go form in their order, and no
// instruction is fused but in the scores by which [Assigner] spares itself most distances:
// they settle only what no rounding could change. Arguments that the elementary functions treat apart go
// to the scalar form; those of float32 have none but powers. The pure Go form is the twin that tests compare with, bit
// for bit, and what runs elsewhere, under the race detector, and with
//
//	SUPERSTEP_DEBUG=kernel.asm=off
//
// in the environment. [Assembly] tells which is in use. One call into assembly
// is kept short, as nothing interrupts it.
//
// # Shapes and ownership
//
// Matrices are row-major: row i of x with d features is x[i*d : (i+1)*d].
// Functions keep no reference to a slice they are given and allocate nothing
// unless they say so; destination and source must be the same slice or not
// overlap. Lengths are the caller's duty: a slice shorter than its stated
// shape is a bug of the caller and panics like any index out of range. Values
// are never a reason to panic: NaN and infinities flow through as IEEE 754
// says, and each search states what it does with a NaN.
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
