package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// crossed is a job whose rows move to other workers and back: first by hash, then all to one
// shard.
func crossed(builds *atomic.Int64) *Job[squaresArgs] {
	return Define("crossed", func(b *Builder, a squaresArgs) error {
		builds.Add(1)
		fact, err := b.Fact("first build", func() (string, error) { return fmt.Sprint(builds.Load()), nil })
		if err != nil || fact != "1" {
			return fmt.Errorf("fact %q: %w", fact, err)
		}
		rows := numbers(b, a.N)
		Collect(rows, "numbers")
		spread := b.Add(Spec{
			Op: "Spread", Schema: arrowrows.Schema(numberSchema), Inputs: []Port{{From: rows, Partitioner: Hash, Keys: []string{"n"}}},
			Operator: func() Operator { return transformer{square} },
		})
		Collect(spread, "spread")
		text := b.Stdout()
		b.Add(Spec{
			Op: "Say", Inputs: []Port{{From: spread}}, Single: true,
			Operator: func() Operator { return &discardSink{} },
			Sink:     saySink{func() error { _, err := fmt.Fprintln(text, "done"); return err }},
		})
		return nil
	})
}

// discardSink is a sink operator that ignores its rows.
type discardSink struct{}

func (*discardSink) Open(*Context) error                             { return nil }
func (*discardSink) Process(*Context, int, int, Batch, Output) error { return nil }
func (*discardSink) EndShard(*Context, int, Output) error            { return nil }
func (*discardSink) Finish(*Context, Output) error                   { return nil }
func (*discardSink) Close() error                                    { return nil }

// saySink calls a function at its commit.
type saySink struct{ commit func() error }

func (saySink) Begin() error    { return nil }
func (s saySink) Commit() error { return s.commit() }
func (saySink) Abort() error    { return nil }

// TestWorkersGiveWhatOneProcessGives requires that rows, text, accumulators, report and progress
// do not depend on the number of workers.
func TestWorkersGiveWhatOneProcessGives(t *testing.T) {
	type came struct {
		names           []string
		numbers, spread []number
		text            string
		seen            float64
		rows            []int64
	}
	run := func(workers, builds int) came {
		var built atomic.Int64
		var out bytes.Buffer
		var last Progress
		r, err := Run(t.Context(), crossed(&built), squaresArgs{N: 100}, Parallelism(5), Shards(16), BatchRows(3),
			Workers(workers), Stdout(&out), OnProgress(func(p Progress) { last = p }), checkedAllocator(t), SpillDir(t.TempDir()))
		require.NoError(t, err)
		defer r.Release()
		require.EqualValues(t, builds, built.Load(), "each worker must build the job once, and the client twice")
		c := came{names: r.Names(), text: out.String()}
		c.numbers, err = Rows[number](r, "numbers")
		require.NoError(t, err)
		c.spread, err = Rows[number](r, "spread")
		require.NoError(t, err)
		c.seen, _ = r.Accumulator("seen")
		require.True(t, last.Done)
		for _, v := range last.Vertices {
			require.Equal(t, v.Shards, v.ShardsDone, v.Name)
			c.rows = append(c.rows, v.Rows)
		}
		for _, v := range r.Report.Vertices {
			require.NotEmpty(t, v.Subtasks)
			for _, s := range v.Subtasks {
				require.NotEmpty(t, s.Operators)
				c.rows = append(c.rows, s.RowsIn)
			}
		}
		return c
	}
	want := run(0, 2)
	require.Len(t, want.spread, 100)
	require.Equal(t, "done\n", want.text)
	for workers := 1; workers <= 5; workers++ {
		require.Equal(t, want, run(workers, 2+workers), "%d workers", workers)
	}
	require.Equal(t, want, run(9, 2+5), "there must be no worker without a slot")
}

// TestWorkersShareNothingOfABuild requires that each worker has its own variables of a build, so
// that a job that relies on sharing them fails.
func TestWorkersShareNothingOfABuild(t *testing.T) {
	job := Anonymous(func(b *Builder) error {
		var together atomic.Int64 // counts over all subtasks of this build
		Collect(transform(numbers(b, 8), "count", func(*Context, int64) (int64, error) {
			return together.Add(1), nil
		}), "counts")
		return nil
	})
	for workers, most := range map[int]int64{0: 8, 1: 8, 2: 4, 4: 2} {
		r, err := Run(t.Context(), job, struct{}{}, Parallelism(4), Shards(8), Workers(workers))
		require.NoError(t, err)
		rows, err := Rows[number](r, "counts")
		require.NoError(t, err)
		var largest int64
		for _, n := range rows {
			largest = max(largest, n.Value)
		}
		require.Equal(t, most, largest, "%d workers", workers)
		r.Release()
	}
}

func TestWorkersFailAsOneProcessDoes(t *testing.T) {
	for _, workers := range []int{0, 1, 2, 3} {
		opts := []Option{Parallelism(3), Shards(4), Workers(workers), checkedAllocator(t)}
		_, err := Run(t.Context(), squares, squaresArgs{N: 10, Fail: "gave up"}, opts...)
		require.ErrorContains(t, err, `job "squares": `)
		require.ErrorContains(t, err, "gave up")
		var failed *task.TaskError
		require.ErrorAs(t, err, &failed)
		require.False(t, task.FollowsPeer(err))

		_, err = Run(t.Context(), squares, squaresArgs{N: 1000}, append(opts, MemoryBudget(100))...)
		require.ErrorContains(t, err, "collect fewer rows")

		ctx, cancel := context.WithCancelCause(t.Context())
		stop := errors.New("the user went away")
		_, err = Run(ctx, Anonymous(func(b *Builder) error {
			Collect(transform(numbers(b, 8), "stop", func(c *Context, n int64) (int64, error) {
				cancel(stop)
				<-c.Done()
				return 0, context.Cause(c)
			}), "rows")
			return nil
		}), struct{}{}, opts...)
		require.ErrorIs(t, err, stop)

		_, err = Run(t.Context(), squares, squaresArgs{N: 10}, append(opts, OnProgress(func(Progress) { panic("no progress") }))...)
		require.ErrorContains(t, err, "no progress")
	}
}

// TestWorkersAmongTheOptions requires that the last option counts if several options say where a
// job runs.
func TestWorkersAmongTheOptions(t *testing.T) {
	_, err := Run(t.Context(), squares, squaresArgs{N: 1}, Workers(-1))
	require.ErrorContains(t, err, "the option Workers is -1: want at least 1, or 0 to run the job as a whole")
	for i, c := range []struct {
		opts    []Option
		cluster string
		workers int
	}{
		{[]Option{Cluster("here"), Workers(2)}, "", 2},
		{[]Option{Cluster("here"), Workers(0)}, "here", 0},
		{[]Option{Workers(2), Local()}, "", 0},
	} {
		made, err := newConfig(c.opts)
		require.NoError(t, err)
		require.Equal(t, c.cluster, made.cluster.address, "case %d", i)
		require.Equal(t, c.workers, made.workers, "case %d", i)
	}
	_, err = Run(t.Context(), Define("odd", func(*Builder, func()) error { return nil }), nil, Workers(2))
	require.ErrorContains(t, err, "adds no operators")
	type odd struct{ C chan int }
	_, err = Run(t.Context(), Define("odd", func(b *Builder, _ odd) error { Collect(numbers(b, 1), "n"); return nil }), odd{make(chan int)}, Workers(2))
	require.ErrorContains(t, err, "cannot travel to workers")
}
