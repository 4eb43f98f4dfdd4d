//go:build !soak

package mesh

// soak runs the full counts; by default about a tenth of them is run.
const soak = false
