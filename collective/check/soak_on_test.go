//go:build soak

package check_test

// soak runs the sweeps in full.
const soak = true
