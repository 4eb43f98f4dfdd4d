//go:build soak

package tests

import "flag"

// Random graphs are drawn many times more often than usual.
func init() {
	if err := flag.Set("rapid.checks", "5000"); err != nil {
		panic(err)
	}
}
