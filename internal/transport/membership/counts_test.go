//go:build !soak

package membership

// The thorough tests kill every process of every group many times.
const soak = false
