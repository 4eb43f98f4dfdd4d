//go:build soak

package engine

import (
	"testing"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestCrossBuildForReal builds for other platforms, including the standard library.
func TestCrossBuildForReal(t *testing.T) {
	for _, arch := range []string{"arm64", "amd64"} {
		t.Run(arch, func(t *testing.T) { buildForReal(t, wire.Platform{OS: "linux", Arch: arch}) })
	}
}
