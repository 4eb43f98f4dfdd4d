//go:build !soak

package engine_test

// soak runs a few seeds.
const soak = false
