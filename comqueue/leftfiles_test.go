//go:build linux

package comqueue_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/hashicorp/go-hclog"
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

	shuffled bool     // a shuffle lies between the source and the queue
	parents  []string // by process: where it keeps files that outlive it; "" if it keeps none
	log      bytes.Buffer

	mu     sync.Mutex
	made   []int        // shards that the source has made in the last run
	onDisk map[int]bool // whether the rows of a shard were in a file in superstep 1 of the last run

	wrong   int           // if not 0, the superstep in which the rows of subtask 1 change, and the run loses none before
	changed chan struct{} // closed when they have
}

func newKeptRuns(t *testing.T, processes int) *keptRuns {
	k := &keptRuns{t: t, mem: memory.NewCheckedAllocator(memory.NewGoAllocator()), dir: t.TempDir(), loses: loss{step: -1}}
	for range processes {
		k.kept, k.parents = append(k.kept, task.NewRetained()), append(k.parents, "")
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
	if k.shuffled {
		rows = shuffle(b, rows)
	}
	return walking("queue", rows, 0).Do(func(ctx *comqueue.ComContext) error {
		if ctx.TaskID() == 0 && ctx.StepNo() == k.loses.step {
			if k.wrong > 0 {
				<-k.changed // of the other process, which waits for nobody in this stage
			}
			return errLost
		}
		changes := ctx.TaskID() == 1 && k.wrong == ctx.StepNo()
		if changes {
			defer close(k.changed)
		}
		return ctx.ForShards(func(shard int) error {
			frame := data.Get(ctx, shard)
			if values := frame.Floats("value"); changes && frame.OnDisk() {
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
		engine.Retaining(k.kept), engine.Allocator(k.mem), engine.MemoryBudget(budget), engine.SpillDir(k.dir),
		engine.Logger(hclog.New(&hclog.LoggerOptions{Output: &k.log})))
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
		k.wrong, k.changed = 2, make(chan struct{})
		_, err := k.run(2, 2, spilling)
		require.ErrorIs(t, err, errLost)
		require.Greater(t, k.inFiles(), 4)
		k.wrong = 0
		_, err = k.run(then, -1, spilling)
		require.ErrorContains(t, err, "is damaged")
		require.ErrorContains(t, err, map[int]string{2: "kept beyond the memory budget", 4: "kept in a file"}[then])
	}
}

// keepFiles makes all processes keep files that outlive them.
func (k *keptRuns) keepFiles() {
	for i := range k.kept {
		k.parents[i] = k.t.TempDir()
		k.kept[i].KeepFiles(k.parents[i])
	}
}

// kill replaces a process, as if the former had been killed: the new one finds a copy of its files, which
// nobody has locked. damage, if set, changes them.
func (k *keptRuns) kill(i int, damage func(dir string)) {
	left := k.t.TempDir()
	require.NoError(k.t, os.CopyFS(left, os.DirFS(k.parents[i])))
	k.lose(i)
	requireEmpty(k.t, k.parents[i])
	if damage != nil {
		dirs, err := filepath.Glob(filepath.Join(left, "superstep-*.lock"))
		require.NoError(k.t, err)
		require.Len(k.t, dirs, 1)
		damage(strings.TrimSuffix(dirs[0], ".lock"))
	}
	k.parents[i] = left
	k.kept[i].KeepFiles(left)
}

// TestRowsInFilesOutliveProcesses requires that the rows which a killed process has left in files are not made
// again, whoever owns their shards then, also after a shuffle and when a second process is killed, that shards
// with rows in memory are made again, that the results, counts and accumulators are those of an undisturbed
// run, and that nothing is left at the end.
func TestRowsInFilesOutliveProcesses(t *testing.T) {
	for _, shuffled := range []bool{false, true} {
		for _, then := range []int{2, 4} {
			t.Run(fmt.Sprint("shuffled ", shuffled, ", then ", then), func(t *testing.T) {
				k, whole := newKeptRuns(t, 4), newKeptRuns(t, 1)
				k.shuffled, whole.shuffled = shuffled, shuffled
				want, err := whole.run(1, -1, 1<<30)
				require.NoError(t, err)
				k.keepFiles()
				budget := int64(spilling)
				if shuffled {
					budget = 16 << 10 // all rows are in files, as a shuffle makes all shards again or none
				}
				_, err = k.run(2, 2, budget)
				require.ErrorIs(t, err, errLost)
				var inMemory []int
				for shard, there := range k.onDisk {
					if owned(16, 2, 2)[shard] == 1 && !there {
						inMemory = append(inMemory, shard)
					}
				}
				require.Equal(t, shuffled, len(inMemory) == 0, "shards %v are in memory", inMemory)
				k.kill(1, nil)
				_, err = k.run(then, 3, budget)
				require.ErrorIs(t, err, errLost)
				requireMade(t, 16, shuffled, then, inMemory, k.made)
				if shuffled {
					require.Empty(t, k.made)
				}
				require.Contains(t, k.log.String(), "need not be made again")
				if then == 2 && shuffled {
					k.kill(1, nil) // its successor has the directory
				}
				got, err := k.run(then, -1, budget)
				require.NoError(t, err)
				require.Empty(t, k.made)
				require.Equal(t, bitsOf(want), bitsOf(got))
				for i := range k.kept {
					k.lose(i)
					requireEmpty(t, k.parents[i])
				}
				require.Zero(t, mappings(t, k.dir))
			})
		}
	}
}

// TestRowsInFilesAreChecked requires that rows which a process has left in files are made again, with a line
// in the log, if a file or a description is damaged or missing, or belongs to something else.
func TestRowsInFilesAreChecked(t *testing.T) {
	change := func(pattern string, f func(path string) error) func(dir string) {
		return func(dir string) {
			paths, err := filepath.Glob(filepath.Join(dir, pattern))
			require.NoError(t, err)
			require.NotEmpty(t, paths)
			for _, path := range paths {
				require.NoError(t, f(path))
			}
		}
	}
	changed := func(path string) error {
		data, err := os.ReadFile(path)
		if err == nil {
			for i := len(data) / 2 % 512; i < len(data); i += 512 {
				data[i] ^= 4
			}
			err = os.WriteFile(path, data, 0o600)
		}
		return err
	}
	torn := func(path string) error {
		info, err := os.Stat(path)
		if err == nil {
			err = os.Truncate(path, info.Size()-1)
		}
		return err
	}
	newer := func(path string) error {
		data, err := os.ReadFile(path)
		if err == nil {
			data[8]++
			err = os.WriteFile(path, data, 0o600)
		}
		return err
	}
	for _, c := range []struct {
		name, why string
		damage    func(dir string)
	}{
		{"damaged rows", "is damaged", change("rows-*", changed)},
		{"torn rows", "bytes", change("rows-*", torn)},
		{"no rows", "no such file", change("rows-*", os.Remove)},
		{"damaged descriptions", "checksum", change("*.rows", changed)},
		{"torn descriptions", "it has", change("*.rows", torn)},
		{"newer descriptions", "version 2", change("*.rows", newer)},
		{"empty descriptions", "not the description", change("*.rows", func(path string) error { return os.Truncate(path, 0) })},
		{"no descriptions", "", change("*.rows", os.Remove)},
		{"damaged counts", "checksum", change("made", changed)},
		{"no counts", "", change("made", os.Remove)},
		{"counts are rows", "not the description", func(dir string) {
			paths, err := filepath.Glob(filepath.Join(dir, "*.rows"))
			require.NoError(t, err)
			require.NoError(t, os.Rename(paths[0], filepath.Join(dir, "made")))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k, whole := newKeptRuns(t, 4), newKeptRuns(t, 1)
			want, err := whole.run(1, -1, 1<<30)
			require.NoError(t, err)
			k.keepFiles()
			_, err = k.run(2, 2, spilling)
			require.ErrorIs(t, err, errLost)
			k.kill(1, c.damage)
			got, err := k.run(2, -1, spilling)
			require.NoError(t, err)
			require.Equal(t, owners(16, 2, 1), k.made, "all rows of the process that was killed are made again")
			require.Equal(t, bitsOf(want), bitsOf(got))
			require.NotContains(t, k.log.String(), "need not be made again")
			if c.why != "" {
				require.Contains(t, k.log.String(), "are made again")
				require.Contains(t, k.log.String(), c.why)
			}
			k.lose(1)
			requireEmpty(t, k.parents[1])
		})
	}
}

// TestRowsInFilesOfAnotherJob requires that rows which a process of another job or with another seed has left
// in files are not used, and that rows which a living process has are left alone.
func TestRowsInFilesOfAnotherJob(t *testing.T) {
	other := newKeptRuns(t, 4)
	other.shuffled = true
	other.keepFiles()
	_, err := other.run(2, 2, spilling)
	require.ErrorIs(t, err, errLost)

	k, whole := newKeptRuns(t, 4), newKeptRuns(t, 1)
	want, err := whole.run(1, -1, 1<<30)
	require.NoError(t, err)
	k.keepFiles()
	k.kept[0].KeepFiles(other.parents[0]) // its process is alive
	other.kill(1, nil)
	k.kept[1].KeepFiles(other.parents[1])
	got, err := k.run(2, -1, spilling)
	require.NoError(t, err)
	require.Len(t, k.made, 16)
	require.Equal(t, bitsOf(want), bitsOf(got))
	require.Contains(t, k.log.String(), "they belong to another job, graph or seed")

	other.parents[1] = t.TempDir()
	other.kept[1].KeepFiles(other.parents[1])
	got, err = other.run(2, -1, spilling)
	require.NoError(t, err)
	require.NotEmpty(t, got)
	require.Len(t, other.made, 16, "a shuffle makes all")
}

// TestRowsInMemoryLeaveNoFiles requires that a process writes nothing for rows that fit into its memory.
func TestRowsInMemoryLeaveNoFiles(t *testing.T) {
	k := newKeptRuns(t, 2)
	k.keepFiles()
	_, err := k.run(2, 2, 1<<30)
	require.ErrorIs(t, err, errLost)
	require.Zero(t, k.inFiles())
	for _, parent := range k.parents {
		own, err := filepath.Glob(filepath.Join(parent, "*"))
		require.NoError(t, err)
		require.Len(t, own, 2, "a directory and its lock")
		requireEmpty(t, own[0])
	}
}
