//go:build soak

package faulty_test

// soak runs the full counts.
const soak = true
