//go:build soak

package engine_test

// soak is true: tests with random seeds run all of them.
const soak = true
