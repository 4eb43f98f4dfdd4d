//go:build !soak

package kernel

// ulpPoints is the number of rounds of random arguments per function.
const ulpPoints = 400

// formShapes is 1 if most of the shapes at which assembly could be compared with pure Go are
// skipped.
const formShapes = 1

// formPoints is the number of rounds of arguments for the forms of a function.
const formPoints = 20
