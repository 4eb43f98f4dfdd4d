// These tests run on one goroutine, where the race detector finds nothing.

//go:build !race

package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/proctest"
)

// fused matches the fused multiply-add instructions of the assembler listings
// of arm64 and amd64.
var fused = regexp.MustCompile(`\b(VFN?M(ADD|SUB)\w*|FN?M(ADD|SUB)[SD]?)\b`)

// instances is added to the package only for the listing. It makes the compiler emit the
// generic functions for every element type. Otherwise the listing would lack functions for
// types with which the package does not instantiate them.
const instances = `package kernel

func floats[T Float](a T, x, y []T) T {
	RowNorms(x, 1, y)
	DotRows(x, 1, 1, x, y)
	AddScaledRows(x, 1, 1, x, y)
	Axpy(a, x, y)
	Scale(a, y)
	return Dot(x, y)
}

func numbers[T Number](x, y []T) {
	AddTo(x, y)
	ProdTo(x, y)
	MaxTo(x, y)
	MinTo(x, y)
}

func Instances() {
	floats[float32](1, nil, nil)
	floats[float64](1, nil, nil)
	numbers[float32](nil, nil)
	numbers[float64](nil, nil)
	numbers[int32](nil, nil)
	numbers[int64](nil, nil)
	numbers[uint8](nil, nil)
}
`

// listing compiles this package with extra source for a target and returns the assembler
// listing.
func listing(t *testing.T, extra string, env ...string) string {
	dir := t.TempDir()
	wd, err := os.Getwd()
	require.NoError(t, err)
	over := filepath.Join(dir, "extra.go")
	require.NoError(t, os.WriteFile(over, []byte(extra), 0o644))
	overlay := filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, []byte(fmt.Sprintf(`{"Replace":{%q:%q}}`, filepath.Join(wd, "zz_extra.go"), over)), 0o644))
	// Package tests also compiles for these targets with -trimpath, so the build cache has the
	// standard library.
	cmd := proctest.Command("go", "build", "-trimpath", "-overlay", overlay, "-gcflags=-S", "-o", filepath.Join(dir, "kernel.a"), ".")
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux"), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return string(out)
}

var targets = [][]string{{"GOARCH=arm64"}, {"GOARCH=amd64", "GOAMD64=v3"}}

// TestNoFusedMultiplyAdd requires that the listing of this package has no fused multiply-add on
// targets for which the compiler may use it.
func TestNoFusedMultiplyAdd(t *testing.T) {
	for _, env := range targets {
		t.Run(strings.Join(env, ","), func(t *testing.T) {
			t.Parallel()
			out := listing(t, instances, env...)
			for _, name := range []string{"kernel.logPair STEXT", "kernel.scan8 STEXT", "kernel.DotRows[go.shape.float32]", "kernel.AddScaledRows[go.shape.float64]"} {
				require.Contains(t, out, name, "the listing lacks a function of the package")
			}
			for line := range strings.Lines(out) {
				require.False(t, fused.MatchString(line), "the listing must have no fused instruction: %s", line)
			}
		})
	}
}

// TestFusionIsFound requires that the search of TestNoFusedMultiplyAdd finds a fusion if there
// is one.
func TestFusionIsFound(t *testing.T) {
	const bad = "package kernel\n\nfunc Fusible(x, y, z float64) float64 { return x*y + z }\n"
	var wg sync.WaitGroup
	for _, env := range targets {
		wg.Go(func() {
			require.Regexp(t, fused, listing(t, bad, env...))
		})
	}
	wg.Wait()
}
