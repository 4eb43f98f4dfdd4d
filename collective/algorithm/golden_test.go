package algorithm_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/check"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files of testdata anew")

// TestReducingGolden compares the text of programs with golden files, so that the effect of a
// change of a generator can be reviewed. To accept a change, rewrite the files with
//
//	go test ./collective/algorithm -run TestReducingGolden -rewrite
//
// and review the difference.
func TestReducingGolden(t *testing.T) {
	eachReducing(t, func(t *testing.T, a *algorithm.Algorithm) {
		sizes := []int{4, 5}
		if a.Name == "torus" || a.Name == "blueconnect" {
			sizes = []int{4, 9} // 5 is prime
		}
		for _, p := range sizes {
			programs, err := check.Generate(a, algorithm.Params{P: p})
			require.NoError(t, err)
			var b strings.Builder
			for _, part := range programs {
				fmt.Fprintln(&b, part)
			}
			file := filepath.Join("testdata", fmt.Sprintf("%s-%s-%d.txt", a.Collective, a.Name, p))
			if *rewrite {
				require.NoError(t, os.MkdirAll("testdata", 0o777))
				require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o666))
				continue
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), b.String(), "%s must have the text of the programs; rewrite the file if the change is intended", file)
		}
	})
}
