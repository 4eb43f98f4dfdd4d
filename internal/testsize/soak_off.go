//go:build !soak

package testsize

// Soak is true under the build tag soak.
const Soak = false
