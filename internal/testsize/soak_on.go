//go:build soak

package testsize

const Soak = true
