//go:build !soak

package kernel

// ulpPoints is the number of rounds of random arguments per function.
const ulpPoints = 400

// formShapes divides the shapes at which assembly is compared with pure Go.
const formShapes = 1

// formPoints is the number of rounds of arguments for the forms of a function.
const formPoints = 20

// singleStride is the distance, in bit patterns, of the arguments at which the functions of
// float32 are tested.
const singleStride = 131071
