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
)

// All golden files of the package share one flag. The first init to run defines it.
func init() {
	if flag.Lookup("rewrite") == nil {
		flag.Bool("rewrite", false, "write the golden files in testdata anew")
	}
}

// TestMovingGolden compares the text of the programs for four ranks (root 0) and five ranks
// (root 2) with golden files, so that the effect of a change of a generator can be reviewed. To
// accept a change:
//
//	go test ./collective/algorithm -run Golden -rewrite
func TestMovingGolden(t *testing.T) {
	for _, c := range moving {
		for _, a := range algorithm.For(c) {
			var b strings.Builder
			for _, pr := range []algorithm.Params{{P: 4, Root: 0}, {P: 5, Root: 2}} {
				if a.Supports(pr) != nil {
					continue
				}
				for rank := range pr.P {
					fmt.Fprintln(&b, a.Generate(pr, rank))
				}
			}
			file := filepath.Join("testdata", c.String()+"-"+a.Name+".txt")
			if flag.Lookup("rewrite").Value.String() == "true" {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(want), b.String(), "%s must have the text of the programs; the comment of this test says how to accept a change", file)
		}
	}
}
