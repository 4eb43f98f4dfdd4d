//go:build !soak

package tests

// soak says that tests run at their full counts.
const soak = false
