package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/wire"
)

// offerAll registers the jobs, as WorkerMain does.
func offerAll(t *testing.T, jobs ...Runnable) {
	t.Helper()
	before := registeredJobs.Load()
	t.Cleanup(func() { registeredJobs.Store(before) })
	registerJobs(jobs)
}

// ranSquares sends the events of a job that computes the squares of 0..3 on 8 shards.
func ranSquares(p *player) {
	p.run()
	p.collect(collectNode, 4, 4)
	p.collect(collectNode, 0, 0)
	p.collect(collectNode, 6, 9)
	p.collect(collectNode, 2, 1)
	p.finish()
}

func TestClusterRun(t *testing.T) {
	offerAll(t, squares)
	f := newFakeCluster(t, ranSquares)
	args := squaresArgs{N: 4}
	result, err := Run(t.Context(), squares, args, f.options(Seed(7), Parallelism(2), BatchRows(10), IfExists(Replace), MemoryBudget(1<<20), WaitTimeout(time.Minute), Priority(-2), RequireCheckpoints(true),
		Restarts(Restart{Strategy: FixedDelay, Attempts: 2, Delay: time.Second}))...)
	require.NoError(t, err)
	defer result.Release()
	rows, err := Rows[number](result, "squares")
	require.NoError(t, err)
	require.Equal(t, []number{{0}, {1}, {4}, {9}}, rows, "rows must be in shard order, in whatever order they arrive")
	require.Equal(t, fakeJob, result.JobID)

	local, err := Compile(squares, args, Shards(8), Seed(7), Parallelism(2))
	require.NoError(t, err)
	require.Equal(t, local.Text(), result.Plan.Text())
	require.Len(t, result.Report.Vertices, len(local.Vertices))

	spec := f.specs[0]
	graph, err := BuildGraph(squares, args, Shards(8), Seed(7))
	require.NoError(t, err)
	sent, err := plan.DecodeGraph(spec.Graph)
	require.NoError(t, err)
	require.Equal(t, graph.Fingerprint(), sent.Fingerprint())
	var got squaresArgs
	require.NoError(t, decodeArgs(spec.Args, &got))
	require.Equal(t, args, got)
	require.Len(t, spec.Artifact, 64)
	dir, err := os.Getwd()
	require.NoError(t, err)
	require.Equal(t, dir, spec.Dir)
	require.Equal(t, f.overview.Platforms[0], spec.Platform)
	require.Equal(t, wire.Build(), spec.Build)
	spec.Graph, spec.Args, spec.Artifact, spec.Build, spec.Platform, spec.Dir = nil, nil, "", "", wire.Platform{}, ""
	require.Equal(t, wire.JobSpec{
		Name: "squares", Parallelism: 2, Shards: 8, Seed: 7, Attached: true, Priority: -2, WaitTimeout: time.Minute, Version: wire.Version,
		Restart: wire.Restart{Strategy: wire.RestartFixedDelay, Attempts: 2, Delay: time.Second},
		Run:     wire.RunOptions{BatchRows: 10, Memory: 1 << 19, IfExists: "replace", LogLevel: "off", RequireCheckpoints: true},
	}, spec)
	require.Equal(t, []bool{true}, f.attached)
}

func TestClusterParallelism(t *testing.T) {
	offerAll(t, squares)
	for _, test := range []struct{ slots, shards, want int }{{3, 8, 3}, {99, 8, 8}} {
		f := newFakeCluster(t, ranSquares)
		f.overview.Slots = test.slots
		result, err := Run(t.Context(), squares, squaresArgs{N: 4}, f.options(Shards(test.shards))...)
		require.NoError(t, err)
		result.Release()
		require.Equal(t, test.want, f.specs[0].Parallelism)
	}
	f := newFakeCluster(t, ranSquares)
	f.overview.Slots, f.overview.Platforms = 0, nil
	_, err := Run(t.Context(), squares, squaresArgs{N: 4}, f.options()...)
	require.ErrorContains(t, err, "has no slots yet")
	require.Empty(t, f.specs)
	result, err := Run(t.Context(), squares, squaresArgs{N: 4}, f.options(Parallelism(2))...)
	require.NoError(t, err, "a job with a given parallelism must wait for task managers")
	result.Release()
}

func TestClusterUpload(t *testing.T) {
	offerAll(t, squares)
	f := newFakeCluster(t, ranSquares)
	f.missing = true
	var states []string
	result, err := Run(t.Context(), squares, squaresArgs{N: 4}, f.options(OnProgress(func(p Progress) {
		if n := len(states); n == 0 || states[n-1] != p.State {
			states = append(states, p.State)
		}
	}))...)
	require.NoError(t, err)
	result.Release()
	self, err := os.Executable()
	require.NoError(t, err)
	info, err := os.Stat(self)
	require.NoError(t, err)
	require.Equal(t, info.Size(), f.uploaded)
	if states[0] == "" {
		states = states[1:] // the state "connecting" is shown only if it takes long
	}
	require.Equal(t, []string{"uploading", "waiting", "deploying", "running", "committing", "finished"}, states)
}

// TestClusterWithoutUploads requires that the client sends no executable if the job manager
// accepts none, but gives the executable's hash and build in the job's specification.
func TestClusterWithoutUploads(t *testing.T) {
	offerAll(t, squares)
	f := newFakeCluster(t, ranSquares)
	f.overview.Uploads = false
	result, err := Run(t.Context(), squares, squaresArgs{N: 4}, f.options()...)
	require.NoError(t, err)
	defer result.Release()
	self, err := programs.Self()
	require.NoError(t, err)
	require.Equal(t, self.Hash, f.specs[0].Artifact)
	require.Equal(t, self.Hash, result.Executable)
	require.Equal(t, wire.Build(), f.specs[0].Build)
	require.Zero(t, f.uploaded)
}

func TestClusterDetached(t *testing.T) {
	offerAll(t, squares)
	f := newFakeCluster(t, func(*player) { t.Error("the client must not follow a detached job") })
	result, err := Run(t.Context(), squares, squaresArgs{N: 4}, f.options(Detach())...)
	require.NoError(t, err)
	require.Equal(t, fakeJob, result.JobID)
	require.False(t, f.specs[0].Attached)
	_, err = recordsOf(result, "squares")
	require.EqualError(t, err, `no result "squares" is here: the job `+fakeJob+` was left to its cluster (--detach)`)
	require.Empty(t, result.Names())
	require.NotPanics(t, func() { _ = result.Summary() })
	result.Release()
}

func TestClusterRefusesBeforeAnythingIsSent(t *testing.T) {
	nobody := []Option{Cluster("127.0.0.1:1")}
	_, err := Run(t.Context(), Anonymous(func(b *Builder) error { numbers(b, 1); return nil }), struct{}{}, nobody...)
	require.ErrorContains(t, err, "an anonymous job runs in its own process only")
	before := registeredJobs.Load()
	registeredJobs.Store(nil)
	defer registeredJobs.Store(before)
	_, err = Run(t.Context(), squares, squaresArgs{N: 4}, nobody...)
	require.ErrorContains(t, err, "engine.WorkerMain")

	registerJobs([]Runnable{squares})
	_, err = Run(t.Context(), squares, squaresArgs{N: 4}, nobody...)
	require.ErrorContains(t, err, "no job manager answers at 127.0.0.1:1")

	bad := Define("squares", func(b *Builder, _ struct{}) error { b.Errorf("Map: no"); return nil })
	_, err = Run(t.Context(), bad, struct{}{}, nobody...)
	var built *BuildError
	require.ErrorAs(t, err, &built)
}

// absent is a job that depends on a file that the client does not have. If more is true, the
// job also has another mistake.
var absent = Define("absent", func(b *Builder, more bool) error {
	_, err := b.Fact("file", func() (string, error) {
		return "", fmt.Errorf("input /data/x.csv does not exist: %w", fs.ErrNotExist)
	})
	if err != nil {
		b.Errorf("Read: %w", err)
		if more {
			b.Errorf("Map: no")
		}
		return nil
	}
	Collect(transform(numbers(b, 4), "square", square), "squares")
	return nil
})

func TestClusterSeesWhatTheClientCannot(t *testing.T) {
	offerAll(t, absent)
	f := newFakeCluster(t, func(p *player) {
		p.state(wire.JobResolving, "on task manager a")
		ranSquares(p)
	})
	f.build = func() *plan.Plan {
		p, err := Compile(squares, squaresArgs{N: 4}, Shards(8), Parallelism(2))
		if err != nil {
			panic(err)
		}
		return p
	}
	var said []string
	result, err := Run(t.Context(), absent, false, f.options(func(c *config) {
		c.cluster.hooks.say = func(line string) { said = append(said, line) }
	})...)
	require.NoError(t, err)
	defer result.Release()
	require.Empty(t, f.specs[0].Graph)
	rows, err := Rows[number](result, "squares")
	require.NoError(t, err)
	require.Equal(t, []number{{0}, {1}, {4}, {9}}, rows)
	require.Len(t, result.Graph.Nodes, 3)
	require.Len(t, said, 1)
	require.Contains(t, said[0], "input /data/x.csv does not exist")

	_, err = Run(t.Context(), absent, true, f.options()...)
	var built *BuildError
	require.ErrorAs(t, err, &built, "the other mistake must be reported, because it does not depend on the file")
	require.Len(t, f.specs, 1)
}

func TestClusterFailure(t *testing.T) {
	offerAll(t, squares)
	f := newFakeCluster(t, func(p *player) {
		p.run()
		p.collect(collectNode, 0, 0)
		p.fail(&wire.Failure{
			Message: "operator Transform \"square\" (main.go:7), subtask 1, shard 4: panic: boom", Worker: 1, TaskManager: "tm-2",
			ExitCode: 2, LastLines: []string{"panic: boom", "\tmain.go:7 \x1b[2J"},
		})
	})
	_, err := Run(t.Context(), squares, squaresArgs{N: 4}, f.options()...)
	var failed *JobError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, fakeJob, failed.Job)
	require.Equal(t, "failed", failed.State)
	require.Equal(t, 2, failed.Failure.ExitCode)
	require.EqualError(t, err, `job "squares": operator Transform "square" (main.go:7), subtask 1, shard 4: panic: boom
  in worker 1 on task manager tm-2, exit code 2
  the last lines of its output:
    panic: boom
        main.go:7 ?[2J`)
}

func TestJobErrorTexts(t *testing.T) {
	for want, e := range map[string]*JobError{
		`job "x" was cancelled: by superstep cancel (id)`:                          {Job: "id", Name: "x", State: "cancelled", Detail: "by superstep cancel"},
		`job "x" was cancelled (id)`:                                               {Job: "id", Name: "x", State: "cancelled"},
		`job "x" failed: waited 1m0s for 3 slots (id)`:                             {Job: "id", Name: "x", State: "failed", Detail: "waited 1m0s for 3 slots"},
		"job \"x\": row ?[2J?]0;x?\n\tis wrong":                                    {Job: "id", Name: "x", State: "failed", Failure: &Failure{Message: "row \x1b[2J\x1b]0;x\a\n\tis wrong", Worker: -1}},
		`job "x": the disk is full`:                                                {Job: "id", Name: "x", State: "failed", Failure: &Failure{Message: "the disk is full", Worker: -1}},
		"job \"x\": gone\n  in worker 0 on task manager a, ended by signal killed": {Job: "id", Name: "x", State: "failed", Failure: &Failure{Message: "gone", TaskManager: "a", ExitCode: -1, Signal: "killed"}},
		"job \"x\": panic: boom\n\ngoroutine 1:\nmain.f()\n  in worker 3":          {Job: "id", Name: "x", State: "failed", Failure: &Failure{Message: "panic: boom\n\ngoroutine 1:\nmain.f()", Worker: 3, LastLines: []string{"panic: boom", "", "goroutine 1:", "main.f()"}}},
		"job \"x\": gone\n  in worker 3":                                           {Job: "id", Name: "x", State: "failed", Failure: &Failure{Message: "gone", Worker: 3}},
	} {
		require.EqualError(t, e, want)
	}
}

func TestClusterCancelled(t *testing.T) {
	offerAll(t, squares)
	ctx, cancel := context.WithCancelCause(t.Context())
	f := newFakeCluster(t, func(p *player) {
		p.run()
		cancel(errInterrupted)
		p.awaitCancel()
	})
	_, err := Run(ctx, squares, squaresArgs{N: 4}, f.options()...)
	require.EqualError(t, err, `job "squares": cancelled`)
	require.True(t, onlyInterrupted(err))
	require.Equal(t, "by its client", f.reason)

	// Somebody else cancels the job.
	f = newFakeCluster(t, func(p *player) {
		p.run()
		p.state(wire.JobCancelled, "by superstep cancel")
	})
	_, err = Run(t.Context(), squares, squaresArgs{N: 4}, f.options()...)
	var ended *JobError
	require.ErrorAs(t, err, &ended)
	require.EqualError(t, err, `job "squares" was cancelled: by superstep cancel (`+fakeJob+`)`)

	// A job that fails after it was cancelled reports the failure.
	ctx, cancel = context.WithCancelCause(t.Context())
	f = newFakeCluster(t, func(p *player) {
		p.run()
		cancel(errInterrupted)
		<-p.f.cancelled
		p.fail(&wire.Failure{Message: "cannot remove half-written", Worker: -1})
	})
	_, err = Run(ctx, squares, squaresArgs{N: 4}, f.options()...)
	require.EqualError(t, err, `job "squares": cannot remove half-written`)
	require.False(t, onlyInterrupted(err))

	// The run is cancelled before the job is submitted.
	ctx, cancel = context.WithCancelCause(t.Context())
	cancel(errInterrupted)
	_, err = Run(ctx, squares, squaresArgs{N: 4}, f.options()...)
	require.EqualError(t, err, `job "squares": cancelled`)
	require.Len(t, f.specs, 1)
}

// brokenWriter is an output to which nothing can be written.
type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestClusterCannotGoOn(t *testing.T) {
	offerAll(t, squares)
	for _, test := range []struct {
		name string
		play func(p *player)
		more []Option
		want string
	}{
		{"node", func(p *player) { p.collect(0, 0, 1) }, nil, "operator 0 collects rows under no name"},
		{"shard", func(p *player) { p.collect(collectNode, 8, 1) }, nil, `result "squares": rows of shard 8, but there are 8 shards`},
		{"negative shard", func(p *player) { p.collect(collectNode, -1, 1) }, nil, "rows of shard -1"},
		{"garbage", func(p *player) {
			p.send(&wire.Event{Collected: &wire.Collected{Node: collectNode, Rows: []byte("garbage")}})
		}, nil, `result "squares": read arrow stream`},
		{"cut", func(p *player) {
			rows := numberStream(1, 2, 3)
			p.send(&wire.Event{Collected: &wire.Collected{Node: collectNode, Rows: rows[:len(rows)-9]}})
		}, nil, `result "squares", shard 0: read arrow stream`},
		{"memory", func(p *player) { p.collect(collectNode, 0, make([]int64, 1000)...) }, []Option{MemoryBudget(1000)},
			"more than the memory budget of 1000 B: collect fewer rows"},
		{"stdout", func(p *player) { p.print("hello") }, []Option{Stdout(brokenWriter{})}, "write what operators print: broken pipe"},
		{"progress", func(p *player) { <-p.stream.Context().Done() }, []Option{OnProgress(func(p Progress) {
			if p.State == "running" {
				panic("no ink")
			}
		})}, "OnProgress: panic: no ink"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFakeCluster(t, nil)
			f.play = func(p *player) {
				p.run()
				if test.name == "progress" {
					p.awaitCancel()
					return
				}
				test.play(p)
				<-p.stream.Context().Done()
			}
			_, err := Run(t.Context(), squares, squaresArgs{N: 4}, f.options(test.more...)...)
			require.ErrorContains(t, err, test.want)
			if test.name != "progress" {
				require.Contains(t, <-f.cancelled, test.want, "the job must be cancelled if its client cannot follow it")
			}
		})
	}
}

func TestClusterNextAttempt(t *testing.T) {
	offerAll(t, squares)
	f := newFakeCluster(t, func(p *player) {
		p.run()
		p.collect(collectNode, 0, 0)
		p.collect(collectNode, 2, 1)
		p.attempt++
		ranSquares(p)
	})
	result, err := Run(t.Context(), squares, squaresArgs{N: 4}, f.options()...)
	require.NoError(t, err)
	defer result.Release()
	rows, err := Rows[number](result, "squares")
	require.NoError(t, err)
	require.Equal(t, []number{{0}, {1}, {4}, {9}}, rows)
}

func TestClusterOtherPlan(t *testing.T) {
	offerAll(t, squares)
	f := newFakeCluster(t, func(p *player) {
		p.compile()
		p.plan.Fingerprint = strings.Repeat("0", 64)
		p.state(wire.JobRunning, "")
		<-p.stream.Context().Done()
	})
	_, err := Run(t.Context(), squares, squaresArgs{N: 4}, f.options()...)
	require.ErrorContains(t, err, "the job manager made a plan of another job")
}

func TestClusterPrints(t *testing.T) {
	offerAll(t, squares)
	var out lockedBuffer
	f := newFakeCluster(t, func(p *player) {
		p.run()
		p.print("one\n")
		p.print("two\n")
		ranSquares(p)
	})
	result, err := Run(t.Context(), squares, squaresArgs{N: 4}, f.options(Stdout(&out))...)
	require.NoError(t, err)
	result.Release()
	require.Equal(t, "one\ntwo\n", out.String())
}
