//go:build soak

package mesh

// soak runs the full counts.
const soak = true
