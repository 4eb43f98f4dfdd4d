//go:build !soak

package faulty_test

// soak runs the full counts; the default is about a tenth of them.
const soak = false
