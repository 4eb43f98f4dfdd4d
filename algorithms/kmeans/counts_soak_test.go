//go:build soak

package kmeans_test

// Sizes of the thorough tests.
const (
	wildRows      = 100_000
	referenceRows = 100_000
)
