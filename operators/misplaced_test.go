package operators

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
)

// TestOperatorWithinAFunction requires an error if operators are added while the job runs. The
// error must name the line of the call, and the line of the operator whose function makes the
// call.
func TestOperatorWithinAFunction(t *testing.T) {
	same := func(r lineRow) lineRow { return r }
	for name, late := range map[string]func(b *engine.Builder, d *engine.Dataset){
		"Map":      func(_ *engine.Builder, d *engine.Dataset) { Map(d, same) },
		"Filter":   func(_ *engine.Builder, d *engine.Dataset) { Filter(d, func(lineRow) bool { return true }) },
		"Generate": func(b *engine.Builder, _ *engine.Dataset) { FromSlice(b, lineRows(2)) },
		"WriteCSV": func(_ *engine.Builder, d *engine.Dataset) { WriteCSV(d, t.TempDir()+"/x", CSVWriteOptions{}) },
		"Collect":  func(b *engine.Builder, d *engine.Dataset) { engine.Collect(d, "x") },
	} {
		err := runSink(t, func(b *engine.Builder) {
			rows := FromSlice(b, lineRows(3))
			Print(Map(rows, func(r lineRow) lineRow { // the error must name this operator
				late(b, rows)
				return r
			}), PrintOptions{Writer: &bytes.Buffer{}})
		})
		require.ErrorContains(t, err, "is called when the job has been built: operators are added by the job's function itself", name)
		require.Regexp(t, `operator Map .*misplaced_test.go:\d+.*panic: misplaced_test.go:\d+: `, strings.ReplaceAll(err.Error(), "\n", " "), name)
	}
}

// TestUnreadDatasets requires that a dataset that no operator reads is not computed, and that
// the log names its line. A dataset that is read only by such datasets must not be computed
// either, and must not be logged.
func TestUnreadDatasets(t *testing.T) {
	var said bytes.Buffer
	var calls, before, read atomic.Int64
	log := hclog.New(&hclog.LoggerOptions{Output: &said})
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		rows := FromSlice(b, lineRows(3))
		counted := func(n *atomic.Int64) func(lineRow) lineRow {
			return func(r lineRow) lineRow { n.Add(1); return r }
		}
		Map(PartitionByHash(Map(rows, counted(&before)), "n"), counted(&calls))
		engine.Collect(Map(rows, counted(&read)), "rows")
		return nil
	}), struct{}{}, engine.Logger(log))
	require.NoError(t, err)
	result.Release()
	require.Equal(t, []int64{0, 0, 3}, []int64{calls.Load(), before.Load(), read.Load()})
	require.Equal(t, 1, strings.Count(said.String(), "\n"), said.String())
	require.Regexp(t, `WARN.*misplaced_test.go:\d+: nobody reads the rows of Map, which does not run: write or collect them`, said.String())
}

// TestRowsOfOneColumn requires that a result with one column can be read as values, whatever
// the column's name.
func TestRowsOfOneColumn(t *testing.T) {
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		rows := FromSlice(b, lineRows(3))
		engine.Collect(Count(rows), "count")
		engine.Collect(rows, "rows")
		return nil
	}), struct{}{})
	require.NoError(t, err)
	defer result.Release()
	counts, err := engine.Rows[int64](result, "count")
	require.NoError(t, err)
	require.Equal(t, []int64{3}, counts)
	_, err = engine.Rows[string](result, "count")
	require.Error(t, err)
	_, err = engine.Rows[int64](result, "rows")
	require.Error(t, err)
	named, err := engine.Rows[struct{ Count int64 }](result, "count")
	require.NoError(t, err)
	require.Equal(t, "[{3}]", fmt.Sprint(named))
}
