//go:build linux

package comqueue_test

import (
	"bytes"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/operators"
)

// TestOffsetsAreNotOnDisk requires that offsets do not change if the disk returns other bytes,
// as offsets are used before damage is found.
func TestOffsetsAreNotOnDisk(t *testing.T) {
	type visits struct{ Visits []float64 }
	all := make([]visits, 1<<15)
	for i := range all {
		all[i].Visits = []float64{1, 2}[:i%3%2+1]
	}
	var mu sync.Mutex
	var files []*os.File
	fs := rowsFS{disk.OS(), func(dir, pattern string) (disk.File, error) {
		f, err := disk.OS().CreateTemp(dir, pattern)
		if err == nil {
			kept, err := os.OpenFile(f.Name(), os.O_RDWR, 0)
			require.NoError(t, err)
			mu.Lock()
			defer mu.Unlock()
			files = append(files, kept)
		}
		return f, err
	}}
	key := comqueue.PartitionedRows("rows")
	column := key.Vectors("visits")
	_, _, err := runOnce(t, func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "offsets").InitWithPartitionedData(key, operators.FromSlice(b, all)).
			Do(func(ctx *comqueue.ComContext) error {
				before := map[int][]int32{}
				for shard := range 4 {
					before[shard] = slices.Clone(column.Get(ctx, shard).Offsets)
				}
				for _, f := range files {
					info, err := f.Stat()
					require.NoError(t, err)
					_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, int(info.Size())), 0)
					require.NoError(t, err)
					require.NoError(t, f.Close())
				}
				for shard := range 4 {
					require.Equal(t, before[shard], column.Get(ctx, shard).Offsets)
				}
				return nil
			}).CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(1).Exec()
	}, engine.Parallelism(1), engine.Shards(4), engine.MemoryBudget(200<<10), engine.Disk(fs))
	require.NotEmpty(t, files)
	require.ErrorContains(t, err, "is damaged")
}
