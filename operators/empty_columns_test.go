package operators

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
)

// TestEmptyColumns requires that EmptyColumns returns the columns that have no value in any row
// of any file. Rows beyond the sample must be read only if far is set.
func TestEmptyColumns(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"in/a.csv": "a,b,c,d,e\n,1,NA,,\n,,,,\nbad\n", "in/b.csv.gz": "a,b,c,d,e\n,2,NA,,\n,,,,z\n",
		"long.csv": "a,b\n" + strings.Repeat(",\n", 50) + "1,\n",
	})
	for _, test := range []struct {
		path string
		o    CSVOptions
		far  bool
		want []string
	}{
		{"in", CSVOptions{}, false, []string{"a", "d"}},
		{"in", CSVOptions{Types: map[string]string{"c": "float64"}}, false, []string{"a", "c", "d"}},
		{"in", CSVOptions{Nulls: []string{"", "z"}}, false, []string{"a", "d", "e"}},
		{"long.csv", CSVOptions{SampleRows: 10}, false, nil},
		{"long.csv", CSVOptions{SampleRows: 10}, true, []string{"b"}},
		{"long.csv", CSVOptions{}, false, []string{"b"}},
	} {
		job := engine.Define("empty", func(b *engine.Builder, _ struct{}) error {
			test.o.Header = true
			got, err := EmptyColumns(b, filepath.Join(dir, test.path), test.o, test.far, "a", "b", "c", "d", "e", "none")
			require.NoError(t, err)
			require.Equal(t, test.want, got, test)
			engine.Collect(FromSlice(b, []struct{ A int64 }{{1}}), "rows")
			return nil
		})
		_, err := engine.Compile(job, struct{}{})
		require.NoError(t, err)
	}
}
