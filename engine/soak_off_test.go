//go:build !soak

package engine_test

// soak is false: tests with random seeds run only a few of them.
const soak = false
