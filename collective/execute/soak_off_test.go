//go:build !soak

package execute

// soak runs the tests at full count.
const soak = false
