//go:build linux

package comqueue_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// keptRuns are runs of a job whose queue has rows beyond the memory budget, in the same processes.
type keptRuns struct {
	t     *testing.T
	mem   *memory.CheckedAllocator
	kept  []*task.Retained
	loses loss
	dir   string // where runs make their directories

	mu     sync.Mutex
	made   []int        // shards that the source has made in the last run
	onDisk map[int]bool // whether the rows of a shard were in a file in superstep 1 of the last run
	wrong  int          // if not 0, a superstep in which rows change
}

func newKeptRuns(t *testing.T, processes int) *keptRuns {
	k := &keptRuns{t: t, mem: memory.NewCheckedAllocator(memory.NewGoAllocator()), dir: t.TempDir(), loses: loss{step: -1}}
	for range processes {
		k.kept = append(k.kept, task.NewRetained())
	}
	t.Cleanup(func() {
		for i := range k.kept {
			k.lose(i)
		}
		k.mem.AssertSize(t, 0)
	})
	return k
}

// lose replaces a process.
func (k *keptRuns) lose(i int) {
	require.NoError(k.t, k.kept[i].Close())
	k.kept[i] = task.NewRetained()
}

// build adds a source and a queue that reads all rows in each superstep.
func (k *keptRuns) build(b *engine.Builder) *engine.Dataset {
	rows := b.Add(engine.Spec{Op: "Watched", Schema: arrowrows.Schema(schema), Source: func() engine.Source {
		return watchedSource{numbers{1 << 16, spread}, func(shard int) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.made = append(k.made, shard)
		}}
	}})
	return walking("queue", rows, 0).Do(func(ctx *comqueue.ComContext) error {
		if ctx.TaskID() == 0 && ctx.StepNo() == k.loses.step {
			return errLost
		}
		return ctx.ForShards(func(shard int) error {
			frame := data.Get(ctx, shard)
			if values := frame.Floats("value"); k.wrong == ctx.StepNo() && frame.OnDisk() {
				values[0]++
			}
			k.mu.Lock()
			defer k.mu.Unlock()
			k.onDisk[shard] = frame.OnDisk()
			return nil
		})
	}).Exec()
}

// run runs the job until it loses a superstep, or to its end.
func (k *keptRuns) run(p, loses int, budget int64) ([]row, error) {
	k.made, k.onDisk, k.loses.step = nil, make(map[int]bool), loses
	got, _, err := runOnce(k.t, k.build, engine.Shards(16), engine.Parallelism(p), engine.Workers(min(p, len(k.kept))),
		engine.Retaining(k.kept), engine.Allocator(k.mem), engine.MemoryBudget(budget), engine.SpillDir(k.dir))
	slices.Sort(k.made)
	return got, err
}

// inFiles returns how many shards had their rows in files.
func (k *keptRuns) inFiles() (n int) {
	for _, there := range k.onDisk {
		if there {
			n++
		}
	}
	return n
}

// spilling is a memory budget that has room for some shards of keptRuns, of 32 KiB each, and not for all.
const spilling = 128 << 10

// TestRowsInFilesAreLeft requires that the rows which a queue has moved to files stay there when its run
// fails, that the next run neither makes them again nor copies them back to memory, whoever owns their shards
// then, that only rows of a lost process are made again, and that nothing is left at the end.
func TestRowsInFilesAreLeft(t *testing.T) {
	for _, then := range []int{2, 4, 3} {
		for _, lost := range []int{-1, 1} {
			k := newKeptRuns(t, 4)
			whole := newKeptRuns(t, 1)
			want, err := whole.run(1, -1, 1<<30)
			require.NoError(t, err)
			require.Zero(t, whole.inFiles())
			_, err = k.run(2, 2, spilling)
			require.ErrorIs(t, err, errLost)
			require.Len(t, k.made, 16)
			require.Greater(t, k.inFiles(), 4)
			require.Positive(t, mappings(t, k.dir), "rows stay in files between runs")
			requireEmpty(t, k.dir)
			before := k.onDisk
			var missing []int
			if lost >= 0 {
				k.lose(lost)
				missing = owners(16, 2, lost)
			}
			_, err = k.run(then, 3, 1<<30)
			require.ErrorIs(t, err, errLost)
			requireMade(t, 16, false, then, missing, k.made)
			if then == 2 {
				for shard, there := range before {
					require.Equal(t, there && !slices.Contains(missing, shard), k.onDisk[shard], "shard %d: rows stay where they are", shard)
				}
			}
			got, err := k.run(then, -1, 1<<30)
			require.NoError(t, err)
			require.Empty(t, k.made, "all rows are there")
			require.Equal(t, bitsOf(want), bitsOf(got))
			for i := range k.kept {
				k.lose(i)
			}
			require.Zero(t, mappings(t, k.dir), "files are freed")
			requireEmpty(t, k.dir)
		}
	}
}

// mappings returns how many files that were made below a directory are mapped.
func mappings(t *testing.T, dir string) int {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	require.NoError(t, err)
	return strings.Count(string(maps), dir+"/")
}

// owners returns the shards of the subtasks of a worker.
func owners(shards, p, worker int) (owns []int) {
	for shard, owner := range owned(shards, p, p) {
		if owner == worker {
			owns = append(owns, shard)
		}
	}
	return owns
}

// requireEmpty requires that a directory, if it is there, has nothing in it.
func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Empty(t, all)
	_, err = os.Stat(dir)
	require.True(t, err == nil || os.IsNotExist(err))
}

// TestRowsInFilesAreVerifiedLater requires that rows in files which change in a run that fails are found to be
// damaged by the next run, by the process that has them or when it sends them to another one.
func TestRowsInFilesAreVerifiedLater(t *testing.T) {
	for _, then := range []int{2, 4} {
		k := newKeptRuns(t, 4)
		k.wrong = 2
		_, err := k.run(2, 2, spilling)
		require.ErrorIs(t, err, errLost)
		require.Greater(t, k.inFiles(), 4)
		k.wrong = 0
		_, err = k.run(then, -1, spilling)
		require.ErrorContains(t, err, "is damaged")
		require.ErrorContains(t, err, map[int]string{2: "kept beyond the memory budget", 4: "kept in a file"}[then])
	}
}
