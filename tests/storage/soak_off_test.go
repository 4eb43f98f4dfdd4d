//go:build !soak

package storage

// soak runs the full counts; the default is about one in eighty.
const soak = false
