//go:build !race

package testsize

// Race is true under the race detector.
const Race = false
