//go:build soak

package tests

import "flag"

// With the build tag soak, many times more random graphs are drawn than by default.
func init() {
	if err := flag.Set("rapid.checks", "5000"); err != nil {
		panic(err)
	}
}
