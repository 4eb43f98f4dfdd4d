//go:build soak

package kernel

// ulpPoints is the number of rounds of random arguments per function.
const ulpPoints = 40000
