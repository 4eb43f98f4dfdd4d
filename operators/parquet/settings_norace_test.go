//go:build !race && !soak

package parquet

// raced is 1 under the race detector, otherwise 0.
const raced = 0
