//go:build !soak

package faulty_test

// soak runs the full counts; by default about a tenth of them is run.
const soak = false
