//go:build soak

package collective_test

// soak runs the tables in full.
const soak = true
