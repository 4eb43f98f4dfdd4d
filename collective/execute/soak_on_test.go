//go:build soak

package execute

// soak says whether the tests run with the large sizes of a soak test.
const soak = true
