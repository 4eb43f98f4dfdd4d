package operators

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// arrowFileOf returns an Arrow stream of the rows of rec whose schema has metadata of pandas.
func arrowFileOf(t *testing.T, rec arrow.Record, pandas string) string {
	m := arrow.NewMetadata([]string{"pandas"}, []string{pandas})
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(arrow.NewSchema(rec.Schema().Fields(), &m)))
	require.NoError(t, w.Write(array.NewRecord(arrow.NewSchema(rec.Schema().Fields(), &m), rec.Columns(), rec.NumRows())))
	require.NoError(t, w.Close())
	return out.String()
}

// TestReadArrowTellsOfTheIndex requires that Index is called once for each column that is read
// and is an index of a pandas data frame in any of the files.
func TestReadArrowTellsOfTheIndex(t *testing.T) {
	rec := batchtest.Record(t, memory.NewGoAllocator(), batchtest.Schema(t, "x float64", "__index_level_0__ int64", "day utf8"), `[{"x": 1, "__index_level_0__": 2, "day": "a"}]`)
	for pandas, want := range map[string][]string{
		`{"index_columns": ["__index_level_0__"], "columns": []}`:                     {"__index_level_0__"},
		`{"index_columns": ["day", "__index_level_0__", "gone", "day"]}`:              {"day", "__index_level_0__"},
		`{"index_columns": [{"kind": "range", "name": null, "start": 0, "stop": 1}]}`: nil,
		`{"index_columns": "day"}`: nil,
		`{`:                        nil,
	} {
		dir := writeFiles(t, map[string]string{"a.arrow": arrowFileOf(t, rec, "{}"), "b.arrow": arrowFileOf(t, rec, pandas)})
		builds := 0
		var told []string
		rows := func(b *engine.Builder) *engine.Dataset {
			builds++
			return ReadArrow(b, dir, ArrowOptions{Index: func(column string) { told = append(told, fmt.Sprint(builds, column)) }})
		}
		outcome(t, rows)
		for i, column := range want {
			require.Equal(t, fmt.Sprint(1, column), told[i])
		}
		require.Len(t, told, builds*len(want), pandas)
	}
	path := filepath.Join(writeFiles(t, map[string]string{"a.arrow": arrowFileOf(t, rec, `{"index_columns": ["day"]}`)}), "a.arrow")
	outcome(t, func(b *engine.Builder) *engine.Dataset {
		return ReadArrow(b, path, ArrowOptions{Columns: []string{"x"}, Index: func(column string) { t.Error(column) }})
	})
}

// TestReadArrowCountsRoundedNumbers requires that whole numbers that float64 cannot represent
// are counted by column, and that the report names the file and row of one of them.
func TestReadArrowCountsRoundedNumbers(t *testing.T) {
	rec := batchtest.Record(t, memory.NewGoAllocator(), batchtest.Schema(t, "i int64 null", "u uint64", "small int32"),
		`[{"i": "9007199254740992", "u": "18446744073709549568", "small": 1}, {"i": "9007199254740993", "u": "18446744073709551615", "small": 2},
		  {"i": null, "u": "9007199254740993", "small": 3}, {"i": "-9223372036854775808", "u": "9007199254740994", "small": 4}, {"i": "9223372036854775807", "u": 1, "small": 5}]`)
	dir := writeFiles(t, map[string]string{"a.arrow": arrowFileOf(t, rec, ""), "b.arrow": arrowFileOf(t, rec, "")})
	for _, p := range []int{1, 3} {
		result, err := engine.Run(t.Context(), engine.Anonymous(func(b *engine.Builder) error {
			engine.Collect(ReadArrow(b, dir, ArrowOptions{}), "rows")
			return nil
		}), struct{}{}, engine.Parallelism(p), engine.Shards(4), engine.BatchRows(2))
		require.NoError(t, err)
		sums, first := map[string]int64{}, map[string]RoundedCells{}
		for _, v := range result.Report.Vertices {
			for _, s := range v.Subtasks {
				for _, o := range s.Operators {
					for _, c := range o.Counters {
						r, ok := ParseRounded(c.Name)
						require.True(t, ok, c.Name)
						sums[r.Column] += c.Value
						if f := first[r.Column]; f.Column == "" || r.Path < f.Path || r.Path == f.Path && r.Line < f.Line {
							first[r.Column] = r
						}
					}
				}
			}
		}
		result.Release()
		require.Equal(t, map[string]int64{"i": 4, "u": 4}, sums)
		require.Equal(t, RoundedCells{"i", filepath.Join(dir, "a.arrow"), true, 2, `"9007199254740993"`}, first["i"])
		require.Equal(t, filepath.Join(dir, "a.arrow")+", row 2", first["u"].Place())
		require.Equal(t, `"18446744073709551615"`, first["u"].Value)
	}
}
