//go:build !soak

package membership

// soak makes tests run all cases: every process of every group is killed or stopped, many
// times.
const soak = false
