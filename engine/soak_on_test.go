//go:build soak

package engine_test

// soak runs the full counts.
const soak = true
