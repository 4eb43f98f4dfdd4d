//go:build soak

package tests

import "flag"

// Random graphs are drawn many times more often than by default.
func init() {
	if err := flag.Set("rapid.checks", "5000"); err != nil {
		panic(err)
	}
}
