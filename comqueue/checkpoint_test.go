package comqueue_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/checkpoint/s3store"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/s3test"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/shared"
)

var errLost = errors.New("the machine is lost")

// loss is the loss of a run in a superstep of a queue.
type loss struct {
	queue string
	step  int    // 0 means that the run is not lost
	await func() // called before the run is lost
	first int    // the first superstep of the queue that the run does; 0 if it does none
}

// losing returns a function that adds two queues to a job, one after the other. Subtask 0 ends the
// run as *l says.
func losing(n, until int, l *loss) func(b *engine.Builder) *engine.Dataset {
	return func(b *engine.Builder) *engine.Dataset {
		add := func(name string, rows *engine.Dataset) *engine.Dataset {
			return walking(name, rows, until).Do(func(ctx *comqueue.ComContext) error {
				if name != l.queue || ctx.TaskID() != 0 {
					return nil
				}
				if l.first == 0 {
					l.first = ctx.StepNo()
				}
				if ctx.StepNo() == l.step {
					l.await()
					return errLost
				}
				return nil
			}).Exec()
		}
		return add("second", add("first", dataset(b, n, spread)))
	}
}

// savedStep returns the superstep of a queue in the newest checkpoint at a place; 0 if there is none.
func savedStep(t *testing.T, place, queue string) int {
	var store checkpoint.Store
	var err error
	if s3store.Is(place) {
		store, err = s3store.Join(place, s3store.Config{Getenv: os.Getenv})
	} else {
		store, err = checkpoint.ReadDir(disk.OS(), place)
	}
	require.NoError(t, err)
	defer store.Close()
	found, err := checkpoint.List(t.Context(), store, false)
	require.NoError(t, err)
	for _, c := range found {
		require.NoError(t, c.Err)
		for _, q := range c.Manifest.Queues {
			if q.Name == queue {
				return q.Superstep
			}
		}
	}
	return 0
}

// TestLostRunsHaveTheSameBits requires that a run that fails, in any superstep of any queue, is
// continued from its checkpoints with the bits, series and supersteps of an undisturbed run, at
// any parallelism and by any number of workers, and that supersteps that were saved are not repeated.
// Checkpoints are in directories and in an S3-compatible store by turns.
func TestLostRunsHaveTheSameBits(t *testing.T) {
	server := s3test.New()
	getenv := server.Start(t)
	for _, name := range []string{"AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		t.Setenv(name, getenv(name))
	}
	for _, n := range []int{0, 200} {
		for _, until := range []int{4, 0} {
			var loses loss
			build := losing(n, until, &loses)
			shards := engine.Shards(16)
			want, whole, err := runOnce(t, build, shards, engine.Parallelism(2))
			require.NoError(t, err)
			last := whole.Report.Queues[0].Supersteps
			for i, lost := range []struct {
				queue string
				step  int
			}{{"first", 1}, {"first", 2}, {"first", last}, {"second", 1}, {"second", 3}, {"second", last}} {
				for k, p := range []struct{ before, after int }{{2, 1}, {1, 16}, {5, 3}} {
					if !testsize.Soak && k != i%3 {
						continue
					}
					name := fmt.Sprint(n, " rows, until ", until, ", lost in ", lost, ", ", p)
					dir := filepath.Join(t.TempDir(), fmt.Sprint(i))
					if (i+n+until)%2 == 1 {
						dir = "s3://bucket/runs"
					}
					options := func(p, workers int) []engine.Option {
						return []engine.Option{shards, engine.Parallelism(p), engine.Workers(workers), engine.CheckpointDir(dir), engine.CheckpointSupersteps(1), engine.Resume(true)}
					}
					workers, saved := i%3+i%2, lost.step-1
					loses = loss{queue: lost.queue, step: lost.step, await: func() {
						if workers <= 1 {
							return // the states that wait are written after the loss
						}
						if saved > 0 && lost.queue == "first" { // a checkpoint is being written when the second queue begins, and then none is due
							require.Eventually(t, func() bool { return savedStep(t, dir, "first") > 0 }, time.Minute, time.Millisecond)
						}
						saved = savedStep(t, dir, lost.queue)
					}}
					_, _, err := runOnce(t, build, options(p.before, workers)...)
					require.ErrorIs(t, err, errLost, name)
					loses = loss{queue: lost.queue}
					got, result, err := runOnce(t, build, options(p.after, (i+k)%4)...)
					if loses.first > 0 || saved < last {
						require.Greater(t, loses.first, saved, "%s: supersteps that were saved must not be repeated", name)
					}
					require.NoError(t, err, name)
					require.Equal(t, bitsOf(want), bitsOf(got), name)
					requireSameSeries(t, whole.Report.Queues, result.Report.Queues, name)
					require.Empty(t, server.Objects(), "a run that succeeds must remove its checkpoints")
					if strings.HasPrefix(dir, "s3:") {
						_, err := os.Stat("s3:")
						require.ErrorIs(t, err, fs.ErrNotExist, "there must be no directory of that name")
						continue
					}
					left, err := os.ReadDir(dir)
					require.NoError(t, err)
					require.Empty(t, left, "a run that succeeds must remove its checkpoints")
				}
			}
		}
	}
}

// TestReportsOfACut requires that values which subtasks of several processes have reported per shard
// are in the state that is saved, although such values are sent only now and then otherwise.
func TestReportsOfACut(t *testing.T) {
	var loses loss
	build := losing(200, 6, &loses)
	dir := filepath.Join(t.TempDir(), "checkpoints")
	options := []engine.Option{
		engine.Shards(16), engine.Parallelism(4), engine.Workers(2), engine.CheckpointDir(dir), engine.CheckpointSupersteps(2), engine.Resume(true),
	}
	_, whole, err := runOnce(t, build, engine.Shards(16))
	require.NoError(t, err)
	loses = loss{queue: "first", step: 3, await: func() {
		require.Eventually(t, func() bool { return savedStep(t, dir, "first") == 2 }, time.Minute, time.Millisecond)
	}}
	_, _, err = runOnce(t, build, options...)
	require.ErrorIs(t, err, errLost)
	loses = loss{queue: "first"}
	_, result, err := runOnce(t, build, options...)
	require.NoError(t, err)
	require.Equal(t, 3, loses.first)
	requireSameSeries(t, whole.Report.Queues, result.Report.Queues)
}

// TestSavepoint requires that a run continues from the savepoint of another run with other arguments
// and at another parallelism, with the bits of an undisturbed run, also if it is lost again and
// continues from its own checkpoints, and that the savepoint is not changed.
func TestSavepoint(t *testing.T) {
	const n = 200
	var loses loss
	build := losing(n, 6, &loses)
	options := func(p, workers int, more ...engine.Option) []engine.Option {
		return append(more, engine.Shards(16), engine.Parallelism(p), engine.Workers(workers), engine.CheckpointSupersteps(1))
	}
	want, whole, err := runOnce(t, build, engine.Shards(16))
	require.NoError(t, err)
	savepoint := filepath.Join(t.TempDir(), "savepoint")
	loses = loss{queue: "second", step: 3, await: func() {}}
	_, _, err = runOnce(t, build, options(2, 0, engine.CheckpointDir(savepoint))...)
	require.ErrorIs(t, err, errLost)
	files := func() map[string][]byte {
		found, err := filepath.Glob(filepath.Join(savepoint, "[^.]*"))
		require.NoError(t, err)
		all := make(map[string][]byte)
		for _, name := range found {
			all[name], err = os.ReadFile(name)
			require.NoError(t, err)
		}
		return all
	}
	before := files()
	for _, workers := range []int{0, 3} {
		name := fmt.Sprint(workers, " workers")
		own := filepath.Join(t.TempDir(), "own")
		loses = loss{queue: "second", step: 5, await: func() {}}
		_, _, err = runOnce(t, build, options(5, workers, engine.FromSavepoint(savepoint), engine.CheckpointDir(own))...)
		require.ErrorIs(t, err, errLost, name)
		require.Equal(t, 3, loses.first, name)
		loses = loss{queue: "first"}
		got, result, err := runOnce(t, build, options(3, workers, engine.FromSavepoint(savepoint), engine.CheckpointDir(own), engine.Resume(true))...)
		require.NoError(t, err, name)
		require.Zero(t, loses.first, "%s: the first queue had ended in the savepoint, of which the checkpoints have no copy", name)
		require.Equal(t, bitsOf(want), bitsOf(got), name)
		requireSameSeries(t, whole.Report.Queues, result.Report.Queues, name)
		loses = loss{queue: "second"}
		got, _, err = runOnce(t, build, append(options(1, workers, engine.FromSavepoint(savepoint)), engine.CheckpointSupersteps(0))...)
		require.NoError(t, err, name)
		require.Equal(t, 3, loses.first, name)
		require.Equal(t, bitsOf(want), bitsOf(got), name)
	}
	for what, option := range map[string]engine.Option{
		"its run had 16 shards, and this run has 8":    engine.Shards(8),
		"its run had the seed 0, and this run has 9":   engine.Seed(9),
		"--from: there is no savepoint in " + t.Name(): engine.FromSavepoint(t.TempDir()),
	} {
		_, _, err = runOnce(t, build, append(options(1, 0, engine.FromSavepoint(savepoint)), engine.CheckpointSupersteps(0), option)...)
		require.ErrorContains(t, err, strings.TrimSuffix(what, t.Name()))
	}
	other := func(b *engine.Builder) *engine.Dataset { return walking("second", dataset(b, n, spread), 6).Exec() }
	_, _, err = runOnce(t, other, append(options(1, 0, engine.FromSavepoint(savepoint)), engine.CheckpointSupersteps(0))...)
	require.ErrorContains(t, err, `it has a state of queue "first", which this program does not have`)
	changed := func(b *engine.Builder) *engine.Dataset {
		return walking("second", walking("first", dataset(b, n, spread), 6).Exec(), 6).Exec()
	}
	_, _, err = runOnce(t, changed, append(options(1, 0, engine.FromSavepoint(savepoint)), engine.CheckpointSupersteps(0))...)
	require.ErrorContains(t, err, `queue "first" has other stages: stage 10 was Compute "TestSavepoint.losing", and is Criterion now; Criterion was stage 11`)
	require.Equal(t, before, files(), "a savepoint must not be changed")
}

// TestResumeNeedsParallelism requires that a queue whose state belongs to its subtasks does not
// continue at another parallelism, and does at its own.
func TestResumeNeedsParallelism(t *testing.T) {
	step := 2
	var restored atomic.Int32
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "counts").AddNew(func() comqueue.Compute { return silent{&restored} }).
			Do(func(ctx *comqueue.ComContext) error {
				if ctx.StepNo() == step {
					return errLost
				}
				return nil
			}).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) { return []row{{1}}, nil })).SetMaxIter(3).Exec()
	}
	options := func(p int) []engine.Option {
		return []engine.Option{engine.Parallelism(p), engine.CheckpointDir(filepath.Join(t.TempDir(), "checkpoints")), engine.CheckpointSupersteps(1), engine.Resume(true)}
	}
	opts := options(2)
	_, _, err := runOnce(t, build, opts...)
	require.ErrorIs(t, err, errLost)
	step = 0
	restored.Store(0)
	_, _, err = runOnce(t, build, append(opts, engine.Parallelism(3))...)
	require.ErrorContains(t, err, `queue "counts" cannot continue with 3 subtasks in place of 2: stages added by AddNew keep snapshots`)
	_, result, err := runOnce(t, build, opts...)
	require.NoError(t, err)
	require.Equal(t, 3, result.Report.Queues[0].Supersteps)
	require.EqualValues(t, 2*2, restored.Load(), "the snapshots of both subtasks must be restored, and checked once")
}

// losingCodec is a codec that loses the last element of what it decodes, or decodes nothing.
type losingCodec struct {
	shared.Codec[[]float64]
	fails bool
}

func (c losingCodec) Decode(src []byte) ([]float64, error) {
	if c.fails {
		return nil, errLost
	}
	return c.Codec.Decode(src[:len(src)-8])
}

// TestSaveRefuses requires that a run with checkpoints fails at the first one if the queue could
// not continue from it: if a replicated object differs between subtasks, or if a codec does not
// restore an object.
func TestSaveRefuses(t *testing.T) {
	losing := shared.PerShard("losing", losingCodec{Codec: shared.Float64s()})
	failing := shared.Replicated("failing", losingCodec{Codec: shared.Float64s(), fails: true})
	for want, put := range map[string]func(ctx *comqueue.ComContext){
		`queue "q" cannot be saved: the replicated object "walked" differs between subtask 0 and subtask 1 at the beginning of superstep 3`: func(ctx *comqueue.ComContext) {
			walked.Put(ctx, []float64{float64(ctx.TaskID())})
		},
		`the per-shard object "losing" of shard 0 cannot be restored: its codec restores another object: it has length 1 in place of length 2`: func(ctx *comqueue.ComContext) {
			if ctx.TaskID() == 0 { // two subtasks would fail at once, and either could be the first
				losing.Put(ctx, ctx.Shards().Lo, []float64{1, 2})
			}
		},
		`the replicated object "failing" cannot be restored: its codec does not decode what it encoded: the machine is lost`: func(ctx *comqueue.ComContext) {
			failing.Put(ctx, []float64{1})
		},
	} {
		build := func(b *engine.Builder) *engine.Dataset {
			return comqueue.New(b, "q").Add(do(put)).
				CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) { return nil, nil })).SetMaxIter(4).Exec()
		}
		options := []engine.Option{engine.Parallelism(2), engine.Shards(4)}
		_, _, err := runOnce(t, build, options...)
		require.NoError(t, err, "without checkpoints the queue must work")
		for _, workers := range []int{0, 2} {
			_, _, err = runOnce(t, build, append(options, engine.Workers(workers), engine.CheckpointDir(t.TempDir()), engine.CheckpointSupersteps(2))...)
			require.ErrorContains(t, err, want)
		}
	}
}

// TestOneParallelism requires that a graph says which stage binds a queue to one parallelism.
func TestOneParallelism(t *testing.T) {
	sums, object := shared.Scratch[[]float64]("sums"), shared.Replicated("object", shared.Float64s())
	var restored atomic.Int32
	for want, add := range map[string]func(q *comqueue.IterativeComQueue){
		"": func(q *comqueue.IterativeComQueue) {
			q.Add(comqueue.ForEachShard(sums, func(*comqueue.ComContext, int, []float64) error { return nil })).Add(comqueue.AllReduce(sums))
		},
		"AllReduceSum": func(q *comqueue.IterativeComQueue) { q.Add(comqueue.AllReduce(sums)) },
		"AllReduceObject": func(q *comqueue.IterativeComQueue) {
			q.Add(comqueue.AllReduceObject(object, func(a, _ []float64) []float64 { return a }))
		},
		"Compute": func(q *comqueue.IterativeComQueue) {
			q.AddNew(func() comqueue.Compute { return silent{&restored} })
		},
	} {
		job := engine.Anonymous(func(b *engine.Builder) error {
			q := comqueue.New(b, "q").Init(func(ctx *comqueue.ComContext) error { sums.Put(ctx, make([]float64, 1)); return nil })
			add(q)
			engine.Collect(q.CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(2).Exec(), "rows")
			return nil
		})
		g, err := engine.BuildGraph(job, struct{}{})
		require.NoError(t, err)
		n := plan.OneParallelism(g.Nodes)
		if want == "" {
			require.Nil(t, n)
			continue
		}
		require.NotNil(t, n, want)
		require.Equal(t, want, n.Op)
	}
}
