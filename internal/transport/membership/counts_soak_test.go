//go:build soak

package membership

const soak = true
