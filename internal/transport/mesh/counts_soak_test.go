//go:build soak

package mesh

// soak makes tests run their full number of cases.
const soak = true
