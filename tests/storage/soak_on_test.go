//go:build soak

package storage

// soak runs the full counts.
const soak = true
