//go:build !race

package plan

// many is the scale of large graphs. It is smaller under the race detector, which slows this
// package down several times; this package has no concurrency that it could check.
const many = 10_000
