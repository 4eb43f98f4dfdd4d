package comqueue

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// TestSameRows requires that every batch is compared with its part of the rows in a file.
func TestSameRows(t *testing.T) {
	mem := batchtest.Allocator(t)
	schema := batchtest.Schema(t, "id int64")
	of := func(rows ...string) (all []arrow.Record) {
		for _, r := range rows {
			rec := batchtest.Record(t, mem, schema, r)
			t.Cleanup(rec.Release)
			all = append(all, rec)
		}
		return all
	}
	source := of(`[{"id": 1}, {"id": 2}]`, `[{"id": 3}]`, `[{"id": 4}, {"id": 5}]`)
	for held, want := range map[string]string{
		`[{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}, {"id": 5}]`: "",
		`[{"id": 1}, {"id": 7}, {"id": 3}, {"id": 4}, {"id": 5}]`: `column "id", row 1`,
		`[{"id": 1}, {"id": 2}, {"id": 7}, {"id": 4}, {"id": 5}]`: `column "id", row 0`,
		`[{"id": 1}, {"id": 2}, {"id": 3}, {"id": 4}, {"id": 7}]`: `column "id", row 1`,
	} {
		err := sameRows("rows", of(held)[0], source)
		if want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "rows, kept beyond the memory budget: the disk gives other rows back than it was given: ")
		require.ErrorContains(t, err, want)
	}
}
