//go:build soak

package clusters

// soak says that tests run at their full counts.
const soak = true
