//go:build !race && !soak

package parquet

// raced is 1 under the race detector.
const raced = 0
