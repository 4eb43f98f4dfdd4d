//go:build soak

package kernel

// ulpPoints is the number of rounds of random arguments per function.
const ulpPoints = 40000

// formShapes is not 1, so that no shape at which assembly is compared with pure Go is skipped.
const formShapes = 8

// formPoints is the number of rounds of arguments for the forms of a function.
const formPoints = 20000
