package comqueue_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/shared"
)

// TestSavepointBeyondTheMaximum requires that a queue does no superstep, and ends with the rows and series
// of an undisturbed run of as many supersteps as its savepoint has, if the maximum allows no more.
func TestSavepointBeyondTheMaximum(t *testing.T) {
	const saved = 4
	build := func(most, lost int) func(b *engine.Builder) *engine.Dataset {
		return func(b *engine.Builder) *engine.Dataset {
			return walking("q", dataset(b, 200, spread), 0).Do(func(ctx *comqueue.ComContext) error {
				switch {
				case ctx.StepNo() > most:
					return fmt.Errorf("superstep %d, of at most %d", ctx.StepNo(), most)
				case ctx.StepNo() == lost && ctx.TaskID() == 0:
					return errLost
				}
				return nil
			}).SetMaxIter(most).Exec()
		}
	}
	shards := engine.Shards(16)
	savepoint := filepath.Join(t.TempDir(), "savepoint")
	_, _, err := runOnce(t, build(6, saved+1), shards, engine.Parallelism(2), engine.CheckpointDir(savepoint), engine.CheckpointSupersteps(1))
	require.ErrorIs(t, err, errLost)
	require.Equal(t, saved, savedStep(t, savepoint, "q"))
	want, whole, err := runOnce(t, build(saved, 0), shards)
	require.NoError(t, err)
	for _, most := range []int{saved, 1} {
		for _, parallel := range []struct{ subtasks, workers int }{{1, 0}, {3, 0}, {4, 2}} {
			name := fmt.Sprint("at most ", most, ", ", parallel)
			got, result, err := runOnce(t, build(most, 0), shards, engine.Parallelism(parallel.subtasks), engine.Workers(parallel.workers), engine.FromSavepoint(savepoint))
			require.NoError(t, err, name)
			require.Equal(t, bitsOf(want), bitsOf(got), name)
			requireSameSeries(t, whole.Report.Queues, result.Report.Queues, name)
		}
	}
}

// unsavedStates is a Checkpointer that asks for the state after each superstep.
type unsavedStates struct{ saved atomic.Int32 }

func (*unsavedStates) From(string) *task.Cut { return nil }
func (*unsavedStates) Decide(string, int) task.Decision {
	return task.Decision{Purposes: task.InMemory}
}
func (s *unsavedStates) Save(_ string, saved *task.Saved) { s.saved.Add(int32(len(saved.Parts))) }

// TestRunsGoOnUnsaved requires that a run whose states need not be saved goes on, with the same rows, if
// an object cannot be encoded, on one subtask or on all, and that the error that is passed on says so.
func TestRunsGoOnUnsaved(t *testing.T) {
	type connected struct{ To chan int }
	key := shared.Replicated("connected", shared.Msgpack[connected]())
	for _, on := range []int{-1, 0, 2} { // -1 means all
		build := func(b *engine.Builder, p *partitioned) *comqueue.IterativeComQueue {
			return comqueue.New(b, "q").InitWithPartitionedData(data, p.dataset(b, 50, spread)).Do(func(ctx *comqueue.ComContext) error {
				if on < 0 || on == ctx.TaskID() {
					key.Put(ctx, connected{make(chan int)})
				}
				return nil
			}).SetMaxIter(4).CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]row, error) {
				return []row{{float64(shard)}, {float64(ctx.StepNo())}}, nil
			}))
		}
		want, _, err := runParts(t, build, 1, task.Env{}, engine.Parallelism(4), engine.Shards(8))
		require.NoError(t, err)
		for _, workers := range []int{1, 2, 4} {
			name := fmt.Sprint("on ", on, ", ", workers, " workers")
			var mu sync.Mutex
			var told []error
			states := &unsavedStates{}
			env := task.Env{Checkpoints: states, Unsaved: func(_ string, err error) error {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, err)
				return nil
			}}
			got, _, err := runParts(t, build, workers, env, engine.Parallelism(4), engine.Shards(8))
			require.NoError(t, err, name)
			require.Equal(t, want, got, name)
			require.NotEmpty(t, told, name)
			for _, err := range told {
				require.ErrorContains(t, err, `replicated key "connected": shared: encode comqueue_test.connected`, name)
			}
		}
	}
}

// forgetter is a Snapshotter of which restore says how it restores its field.
type forgetter struct {
	calls   byte
	restore func(f *forgetter, src []byte) error
}

func (f *forgetter) Calc(*comqueue.ComContext) error           { f.calls++; return nil }
func (f *forgetter) AppendSnapshot(dst []byte) ([]byte, error) { return append(dst, f.calls), nil }
func (f *forgetter) Restore(src []byte) error                  { return f.restore(f, src) }

// TestSnapshotsAreChecked requires that a state is not saved if a stage does not restore its snapshot.
func TestSnapshotsAreChecked(t *testing.T) {
	for want, restore := range map[string]func(f *forgetter, src []byte) error{
		"":                              func(f *forgetter, src []byte) error { f.calls = src[0]; return nil },
		"has another one (1 bytes, ":    func(f *forgetter, src []byte) error { return nil },
		"restored: the machine is lost": func(f *forgetter, src []byte) error { return errLost },
		"does not restore its snapshot: panic: runtime error": func(f *forgetter, src []byte) error { f.calls = src[1]; return nil },
	} {
		build := func(b *engine.Builder) *engine.Dataset {
			return comqueue.New(b, "q").AddNew(func() comqueue.Compute { return &forgetter{restore: restore} }).
				CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(3).Exec()
		}
		_, _, err := runOnce(t, build)
		require.NoError(t, err, "without checkpoints the queue must work")
		for _, options := range [][]engine.Option{{engine.CheckpointDir(t.TempDir()), engine.CheckpointSupersteps(1)}, {engine.CheckState(true)}, {engine.CheckResume(1, 1)}} {
			_, _, err := runOnce(t, build, append(options, engine.Parallelism(1))...)
			if want == "" {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, "stage TestSnapshotsAreChecked")
			require.ErrorContains(t, err, want)
		}
	}
}
