//go:build !soak

package kmeans_test

// Sizes of the quick tests.
const (
	wildRows      = 1000
	referenceRows = 20_000
)
