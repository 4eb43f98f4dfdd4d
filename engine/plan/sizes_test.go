//go:build !race

package plan

// many scales graphs that are to be large: what the race detector looks for is not in this
// package, whose functions it makes several times slower.
const many = 10_000
