//go:build !soak

package storage

// soak runs the full counts; by default about one in eighty is run.
const soak = false
