//go:build !soak

package kernel

// ulpPoints is the number of rounds of random arguments per function.
const ulpPoints = 400

// formShapes divides the shapes at which assembly is compared with pure Go.
const formShapes = 1

// formPoints is the number of rounds of arguments for the forms of a function.
const formPoints = 20
