//go:build !soak

package check_test

// soak says whether the tests run with the large numbers of ranks of a soak test.
const soak = false
