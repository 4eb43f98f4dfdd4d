package textfile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch"
)

// TestRoundedWholeNumbers requires that whole numbers that float64 cannot represent are counted
// in all rows that are read, and that the position of the first such number is reported.
func TestRoundedWholeNumbers(t *testing.T) {
	rows := strings.Repeat("1,2,3\n", 50)
	text := "a,b,c\n" + rows + "9007199254740993,9007199254740993,9007199254740993\n" + rows +
		"-9007199254740993,\"12345678901234567891\",x\n9007199254740992,9007199254740994,1e300\n9223372036854775807,1e20,?\n,10000000000000000000,\n"
	dir := write(t, map[string]string{"a.csv": text, "b.csv": "a,b,c\n9007199254740993,,\n"})
	l := Layout{Header: []string{"a", "b", "c"}, Names: []string{"a", "b", "c"}, Columns: []batch.Column{
		{Name: "b", Type: "float64", Nullable: true}, {Name: "a", Type: "int64", Nullable: true}, {Name: "c", Type: "utf8", Nullable: true},
	}}
	for _, shards := range []int{1, 7, 64} {
		c := opened(t, resolve(t, dir), Dialect{Header: true}, l, Config{Shards: shards})
		counts, first := map[string]int64{}, map[string]int64{}
		for s := range shards {
			for range 2 { // if a shard is read again, its numbers must not be counted twice
				_, err := readAll(t, c, s)
				require.NoError(t, err)
			}
			for _, r := range c.RoundedIn(s) {
				line, err := r.Line()
				require.NoError(t, err)
				if counts[r.Column] == 0 {
					first[r.Column] = line
					require.Equal(t, `"9007199254740993"`, r.Value)
					require.True(t, strings.HasSuffix(r.Path, "a.csv"))
				}
				counts[r.Column] += r.Numbers
			}
		}
		require.Equal(t, map[string]int64{"a": 4, "b": 2}, counts, shards)
		require.Equal(t, map[string]int64{"a": 52, "b": 52}, first, shards)
	}
	// Numbers in skipped rows must not be counted.
	c := opened(t, resolve(t, dir), Dialect{Header: true}, Layout{Header: l.Header, Names: l.Names, Columns: []batch.Column{
		{Name: "a", Type: "int64", Nullable: true}, {Name: "c", Type: "float64", Nullable: true},
	}}, Config{Shards: 1, OnError: Skip})
	_, err := readAll(t, c, 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, c.Skipped())
	require.Equal(t, "a", c.RoundedIn(0)[0].Column)
	require.EqualValues(t, 3, c.RoundedIn(0)[0].Numbers)
}

func readAll(t *testing.T, c *CSV, shard int) ([][]string, error) {
	return rows(t.Context(), c, shard, 3)
}
