//go:build !soak

package mesh

// soak makes tests run their full number of cases; without it they run about a tenth.
const soak = false
