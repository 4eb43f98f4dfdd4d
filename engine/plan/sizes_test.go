//go:build !race

package plan

// many is the scale of large graphs. It is smaller under the race detector, which makes the
// tests several times slower. This package has no concurrency that the detector could check.
const many = 10_000
