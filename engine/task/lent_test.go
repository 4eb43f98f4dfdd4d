package task

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/mapped"
)

// TestDamagedRowsAreNotGiven requires that rows of a file whose pages are damaged are not given without an error, as
// the process that gets them cannot notice: the checksums of what is sent are those of the damaged rows.
func TestDamagedRowsAreNotGiven(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer mem.AssertSize(t, 0)
	dir := t.TempDir()
	source := makeRows(mem, sourceRows(1000, 1, 0))
	defer source.Release()
	files := mapped.NewNamed(disk.OS(), dir)
	defer files.Close()
	rows, region, err := files.Hold(batch.Size(source), func(mem memory.Allocator) (arrow.Record, error) {
		return batch.Concat(mem, []arrow.Record{source})
	}, func(arrow.Record) error { return nil })
	require.NoError(t, err)
	defer rows.Release()
	k := &Retained{
		lent:    map[string]keptRows{"q": {3: {0: {batch: rows, file: region}}}},
		current: &run{env: Env{Allocator: mem}},
	}
	give := func() (got []row, err error) {
		err = k.Give("q", 0, 3, func(rows columnar.Batch) error {
			got = append(got, readRows(arrowrows.Record(rows))...)
			return nil
		})
		return got, err
	}
	got, err := give()
	require.NoError(t, err)
	require.Equal(t, readRows(source), got)

	layout, err := region.Layout(rows)
	require.NoError(t, err)
	path := filepath.Join(dir, layout.Parts[0].File)
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	for i := range content { // whatever holds the values
		content[i] ^= 1
	}
	_, err = f.WriteAt(content[:batch.Size(source)/2], 0)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	_, err = give()
	require.ErrorContains(t, err, "rows of a queue in a file: ")
}

// TestRowsOfOthersAreRefused requires that descriptions of rows are refused that belong to another job, graph, number of
// shards or seed, although they are whole and fit the plan.
func TestRowsOfOthersAreRefused(t *testing.T) {
	const shards = 4
	p, err := plan.Compile(queueGraph(shards, 3, false, plan.Compute).Graph, 1)
	require.NoError(t, err)
	edges, _ := queueInputs(p, "q")
	own := rowOwner{"job", "graph", shards, 7}
	k := &Retained{files: &rowFiles{of: own, on: disk.OS()}}
	path := filepath.Join(t.TempDir(), "1"+rowsSuffix)
	read := func(of rowOwner) (leftFile, error) {
		data, err := rowsDescriptions.Append(nil, rowsDescription{Of: of, Queue: "q", Port: p.Edges[edges[0]].Port, Shard: 2})
		require.NoError(t, err)
		require.NoError(t, writeDescription(disk.OS(), rowsMark, path, data))
		return k.readRowsFile(p, path)
	}
	f, err := read(own)
	require.NoError(t, err)
	require.Equal(t, 2, f.Shard)
	for _, of := range []rowOwner{{"another", "graph", shards, 7}, {"job", "other", shards, 7}, {"job", "graph", 2 * shards, 7}, {"job", "graph", shards, 8}} {
		_, err := read(of)
		require.ErrorIs(t, err, errOtherRows, "%+v", of)
	}
}
