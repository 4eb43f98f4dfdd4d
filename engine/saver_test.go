package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/checkpoint"
	"github.com/superstep-ml/superstep/engine/checkpoint/s3store"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/s3test"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// memoryStore is a checkpoint.Store whose writes take time and may fail.
type memoryStore struct {
	takes time.Duration // time of each Put
	hangs chan struct{} // if not nil, Put ignores its context and waits until hangs is closed

	mu     sync.Mutex
	blobs  map[string][]byte
	fails  error
	puts   int
	closed bool
}

func (s *memoryStore) Put(ctx context.Context, name string, data []byte) error {
	if s.hangs != nil {
		<-s.hangs
	}
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.puts++
	if s.fails != nil {
		return s.fails
	}
	s.blobs[name] = bytes.Clone(data)
	return nil
}

func (s *memoryStore) Publish(ctx context.Context, name string, data []byte) error {
	if _, err := s.Get(ctx, name, math.MaxInt64); err == nil {
		return fs.ErrExist
	}
	return s.Put(ctx, name, data)
}

func (s *memoryStore) Get(_ context.Context, name string, most int64) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if data, ok := s.blobs[name]; ok && int64(len(data)) <= most {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

func (s *memoryStore) List(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.blobs)), nil
}

func (s *memoryStore) Delete(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.blobs, name)
	return nil
}

func (s *memoryStore) String() string { return "memory" }
func (s *memoryStore) Close() error   { s.closed = true; return nil }

// setFailure makes all later writes fail with err, or succeed if err is nil.
func (s *memoryStore) setFailure(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = err
}

// written returns the number of calls of Put that have ended without the end of the context.
func (s *memoryStore) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.puts
}

// steps returns the superstep of each queue in the newest checkpoint.
func (s *memoryStore) steps(t *testing.T) map[string]int {
	t.Helper()
	j, err := checkpoint.Open(t.Context(), s, checkpoint.Run{Job: "j"})
	require.NoError(t, err)
	c, refused, err := j.Load(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, refused)
	if c == nil {
		return nil
	}
	steps := make(map[string]int)
	for i, q := range c.Queues {
		cut, err := task.CutOfPieces(c.Pieces[i])
		require.NoError(t, err)
		require.Equal(t, []any{q.Superstep, q.Ended}, []any{cut.Step, cut.Last})
		steps[q.Name] = q.Superstep
	}
	return steps
}

func cutAt(step int, last bool) *task.Saved {
	return &task.Saved{
		Cut:  task.Cut{Step: step, Last: last, Parts: []task.CutPart{{Own: []byte{byte(step)}}, {}}},
		Here: sharding.Range{Hi: 2}, Subtasks: 2,
	}
}

// startSaver starts the saver of a run of job j in one process, with the queues a and b.
func startSaver(ctx context.Context, store checkpoint.Store, job string, settings *checkpointConfig, log hclog.Logger, fail context.CancelCauseFunc) (*saver, error) {
	p := &plan.Plan{Shards: 2, Queues: []plan.Queue{{Name: "a"}, {Name: "b"}}, Slots: 2}
	for _, q := range p.Queues {
		p.Vertices = append(p.Vertices, plan.Vertex{Queue: q.Name, Parallelism: 2, Ranges: []sharding.Range{{Hi: 1}, {Lo: 1, Hi: 2}}})
	}
	c := &config{checkpoints: *settings, logger: log}
	s := newSaver(settings, log, fail)
	s.store = store
	if err := c.lead(ctx, s, checkpoint.Run{Job: job}, &checkpointed{plan: p, part: task.Whole(p)}); err != nil {
		return nil, err
	}
	s.start()
	return s, nil
}

// saving runs f, with a saver over a store, in a synctest bubble.
func saving(t *testing.T, settings checkpointConfig, f func(t *testing.T, s *saver, store *memoryStore)) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{blobs: make(map[string][]byte)}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		var warnings bytes.Buffer
		log := hclog.New(&hclog.LoggerOptions{Output: &warnings, Level: hclog.Warn})
		s, err := startSaver(ctx, store, "j", &settings, log, cancel)
		require.NoError(t, err)
		f(t, s, store)
		if s.ending == endSucceeded {
			require.Empty(t, warnings.String(), "a run that succeeded must not warn of writes that it has ended itself")
		}
		require.True(t, store.closed)
		if settings.failAfter > 0 {
			require.ErrorContains(t, context.Cause(ctx), "--checkpoint-fail-after")
		} else {
			require.NoError(t, ctx.Err())
		}
	})
}

// TestSaverByTime requires that each queue is saved once in every interval, that the state of a
// queue that has ended waits for the next checkpoint, and that nothing is due during a write.
func TestSaverByTime(t *testing.T) {
	saving(t, checkpointConfig{every: 10 * time.Second}, func(t *testing.T, s *saver, store *memoryStore) {
		store.takes = 400 * time.Millisecond
		for second := 1; second <= 25; second++ {
			time.Sleep(time.Second)
			for _, queue := range []string{"a", "b"} {
				due := s.Due(queue, second)
				require.Equal(t, (queue == "a" && (second == 10 || second == 20)) || (queue == "b" && (second == 12 || second == 22)), due, "queue %s, second %d", queue, second)
				if due {
					s.Save(queue, cutAt(second, false))
					synctest.Wait()
				}
			}
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Equal(t, map[string]int{"a": 20, "b": 22}, store.steps(t))
		s.Save("a", cutAt(26, true))
		synctest.Wait()
		require.Equal(t, map[string]int{"a": 20, "b": 22}, store.steps(t), "the end of a queue must wait for the next checkpoint")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, map[string]int{"a": 26, "b": 22}, store.steps(t))
		s.close(endSucceeded)
		require.Empty(t, store.blobs, "checkpoints of a run that succeeded must be removed")
	})
}

// TestSaverBySupersteps requires that states are due after every n supersteps, and that only the
// newest state is written if writing takes longer than the supersteps.
func TestSaverBySupersteps(t *testing.T) {
	saving(t, checkpointConfig{steps: 5}, func(t *testing.T, s *saver, store *memoryStore) {
		store.takes = 3 * time.Second // a checkpoint has 4 blobs: 12 s
		for step := 1; step <= 42; step++ {
			if due := s.Due("a", step); due {
				s.Save("a", cutAt(step, false))
			}
			require.Equal(t, step%5 == 0, s.Due("a", step))
			time.Sleep(time.Second)
		}
		s.close(endFailed)
		require.Equal(t, map[string]int{"a": 40}, store.steps(t), "a run that failed must write its newest state")
		require.Equal(t, 4*4, store.written(), "the states after supersteps 5, 15, 25 and 40 must be written")
	})
}

// TestSaverFailures requires that writes that fail are tried again after growing times, that the
// run goes on, and that the newest state is written in the end.
func TestSaverFailures(t *testing.T) {
	full := errors.New("no space left")
	saving(t, checkpointConfig{every: time.Second}, func(t *testing.T, s *saver, store *memoryStore) {
		store.setFailure(full)
		store.takes = 100 * time.Millisecond // so that writes do not end when Due is called
		time.Sleep(time.Second)
		var tries []int
		for second, before := 0, 0; second < 300; second++ {
			if s.Due("a", second+1) {
				s.Save("a", cutAt(second+1, false))
			}
			synctest.Wait()
			if puts := store.written(); puts > before {
				tries, before = append(tries, second), puts
			}
			time.Sleep(time.Second)
		}
		require.Equal(t, []int{1, 2, 4, 8, 16, 32, 64, 124, 184, 244}, tries)
		store.setFailure(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, map[string]int{"a": 300}, store.steps(t), "the newest state must be written")
		require.True(t, s.Due("a", 400))
		s.close(endFailed)
	})
	saving(t, checkpointConfig{every: time.Second, failAfter: time.Minute}, func(t *testing.T, s *saver, store *memoryStore) {
		store.setFailure(full)
		s.Save("a", cutAt(1, false))
		time.Sleep(59 * time.Second)
		require.Zero(t, s.store.(*memoryStore).steps(t))
		time.Sleep(5 * time.Second)
		s.close(endFailed)
	})
}

// TestSaverEnds requires that a write that does not end is given up after the end of the run: at
// once after a success, and after a limit otherwise.
func TestSaverEnds(t *testing.T) {
	for _, succeeded := range []bool{true, false} {
		saving(t, checkpointConfig{steps: 1}, func(t *testing.T, s *saver, store *memoryStore) {
			store.takes = time.Hour
			s.Save("a", cutAt(1, false))
			synctest.Wait()
			s.Save("a", cutAt(2, false))
			began := time.Now()
			s.close(map[bool]ending{true: endSucceeded, false: endFailed}[succeeded])
			if succeeded {
				require.Zero(t, time.Since(began))
			} else {
				require.Equal(t, lastWrite, time.Since(began))
			}
			require.Empty(t, store.blobs)
		})
	}
}

// TestSaverResumes requires that queues continue from the newest states, that the user is told
// where, and that a directory with checkpoints needs Resume.
func TestSaverResumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{blobs: make(map[string][]byte)}
		open := func(job string, resume bool) (*saver, string, error) {
			said := ""
			settings := &checkpointConfig{steps: 1, resume: resume, say: func(line string) { said += line }}
			s, err := startSaver(t.Context(), store, job, settings, hclog.NewNullLogger(), nil)
			return s, said, err
		}
		s, said, err := open("j", true)
		require.NoError(t, err)
		require.Equal(t, "there is no checkpoint in memory yet: the run begins at superstep 1", said)
		require.Empty(t, s.from)
		s.Save("a", cutAt(3, true))
		synctest.Wait()
		s.Save("b", cutAt(7, false))
		synctest.Wait()
		s.close(endFailed)

		_, _, err = open("j", false)
		require.ErrorContains(t, err, "memory has checkpoints of an earlier run: continue that run with --resume, or remove its files")
		_, _, err = open("k", true)
		require.ErrorContains(t, err, `continue from the checkpoints of the run: checkpoint checkpoint-00000002 in memory: this run cannot continue from it: it is of job "j", and this is job "k"`)
		s, said, err = open("j", true)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf(`checkpoint 2 of %s: queue "a" has done all of its 3 supersteps, queue "b" continues after superstep 7`, time.Now().Local().Format(time.RFC3339)), said)
		require.Equal(t, map[string]*task.Cut{"a": &cutAt(3, true).Cut, "b": &cutAt(7, false).Cut}, s.from)
		s.close(endSucceeded)
	})
}

// TestCheckpointDirs requires that directories that cannot hold the checkpoints of a run are
// errors before anything runs, and that a directory that is used by a run is refused to another.
func TestCheckpointDirs(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	run := func(path string, more ...Option) error {
		result, err := Run(t.Context(), squares, squaresArgs{N: 3}, append(more, CheckpointDir(path))...)
		if err == nil {
			result.Release()
		}
		return err
	}
	require.ErrorContains(t, run(file), "--checkpoint-dir: ")
	require.ErrorContains(t, run(file), file)
	require.NoError(t, run(filepath.Join(dir, "made")))
	left, err := os.ReadDir(filepath.Join(dir, "made"))
	require.NoError(t, err)
	require.Empty(t, left)

	used, err := checkpoint.OpenDir(disk.OS(), filepath.Join(dir, "used"))
	require.NoError(t, err)
	require.ErrorContains(t, run(filepath.Join(dir, "used")), "another run writes its checkpoints into "+filepath.Join(dir, "used"))
	require.NoError(t, used.Close())
	require.NoError(t, run(filepath.Join(dir, "used"), Resume(true)))

	output := filepath.Join(dir, "model")
	graph := &plan.Graph{Nodes: []plan.Node{{Op: "Write", Sink: true, Attrs: []plan.Attr{{Key: "path", Value: output}}}}}
	require.NoError(t, checkPaths("--checkpoint-dir", filepath.Join(dir, "models"), graph))
	require.NoError(t, checkPaths("--checkpoint-dir", dir, graph))
	for _, inside := range []string{output, filepath.Join(output, "checkpoints")} {
		require.ErrorContains(t, checkPaths("--checkpoint-dir", inside, graph), "--checkpoint-dir "+inside+" is inside the output "+output)
	}
	graph.Nodes[0].Sink = false
	require.ErrorContains(t, checkPaths("--checkpoint-dir", output, graph), "--checkpoint-dir "+output+" is inside the input "+output)

	graph.Nodes[0].Sink = true
	require.NoError(t, checkSavepoint(dir, graph))
	require.NoError(t, checkSavepoint("s3://bucket"+output, graph))
	require.ErrorContains(t, checkSavepoint(output+"/sp", graph), "the savepoint "+output+"/sp is inside the output "+output)
}

// TestCheckpointStores requires that a run keeps its checkpoints in a store that the environment
// describes, that a store that cannot be used is an error before anything runs, and that a run
// ends if its lease is lost.
func TestCheckpointStores(t *testing.T) {
	server := s3test.New()
	env := map[string]string{}
	getenv := server.Start(t)
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"} {
		env[name] = getenv(name)
		t.Setenv(name, env[name])
	}
	run := func(place string, more ...Option) error {
		result, err := Run(t.Context(), squares, squaresArgs{N: 3}, append(more, CheckpointDir(place))...)
		if err == nil {
			result.Release()
		}
		return err
	}
	require.NoError(t, run("s3://bucket/runs/a"))
	require.Contains(t, server.Requests(), "PUT runs/a/.superstep.checkpoint-lease")
	require.Empty(t, server.Objects())
	server.SetObject("runs/a/checkpoint-00000001", []byte("x"))
	require.ErrorContains(t, run("s3://bucket/runs/a"), "s3://bucket/runs/a has checkpoints of an earlier run")
	require.ErrorContains(t, run("s3://bucket/runs/a", Resume(true)), "no checkpoint in s3://bucket/runs/a can be used")
	require.Len(t, server.Objects(), 1, "the lease must be given back")

	require.ErrorContains(t, run("s3://missing/runs"), "--checkpoint-dir: s3://missing/runs: list the objects of bucket missing at "+env["AWS_ENDPOINT_URL_S3"])
	require.ErrorContains(t, run("s3://missing/runs"), "create the bucket, or correct its name or the endpoint")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "wrong")
	require.ErrorContains(t, run("s3://bucket/runs"), "AWS_SECRET_ACCESS_KEY is not the secret of the key in AWS_ACCESS_KEY_ID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	require.ErrorContains(t, run("s3://bucket/runs"), "--checkpoint-dir: s3://bucket/runs: the environment variable AWS_SECRET_ACCESS_KEY is not set")
}

// TestSaverLosesItsLease requires that a run ends if another run has taken over its checkpoints,
// although it writes nothing.
func TestSaverLosesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := s3test.New()
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		store, err := s3store.Open(ctx, "s3://bucket/x", s3store.Config{Getenv: server.Env("http://s3.test"), Transport: server, Fail: cancel})
		require.NoError(t, err)
		s, err := startSaver(ctx, store, "j", &checkpointConfig{steps: 1}, hclog.NewNullLogger(), cancel)
		require.NoError(t, err)
		s.Save("a", cutAt(1, false))
		synctest.Wait()
		before := server.Objects()
		require.Len(t, before, 5)
		server.SetObject("x/.superstep.checkpoint-lease", []byte(`{"run":"other","host":"h","process":7}`))
		time.Sleep(time.Minute)
		require.ErrorContains(t, context.Cause(ctx), "another run, process 7 on h, has taken over the checkpoints")
		s.Save("a", cutAt(2, false))
		synctest.Wait()
		s.close(endFailed)
		for name := range server.Objects() {
			require.Contains(t, before, name, "nothing may be written after the lease is lost")
		}
		require.Len(t, server.Objects(), len(before), "nothing may be removed after the lease is lost")
	})
}

// TestSaverGivesUp requires that a store that hangs, and ignores its context, delays the end of
// a run only for a limited time, and that it makes the run fail if that is asked for.
func TestSaverGivesUp(t *testing.T) {
	for _, succeeded := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			store := &memoryStore{blobs: make(map[string][]byte), hangs: make(chan struct{})}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			settings := &checkpointConfig{steps: 1, failAfter: time.Minute}
			s, err := startSaver(ctx, store, "j", settings, hclog.NewNullLogger(), cancel)
			require.NoError(t, err)
			s.Save("a", cutAt(1, false))
			time.Sleep(59 * time.Second)
			require.NoError(t, ctx.Err())
			time.Sleep(time.Second)
			synctest.Wait()
			require.ErrorContains(t, context.Cause(ctx), "no checkpoint could be written for 1m0s, and --checkpoint-fail-after is 1m0s: memory does not answer")
			began := time.Now()
			s.close(map[bool]ending{true: endSucceeded, false: endFailed}[succeeded])
			require.Equal(t, lastWrite+grace, time.Since(began))
			close(store.hangs)
			<-s.closed
		})
	}
}

// TestSaverOfAFormerAttempt requires that a run ends, and writes nothing more, when a later attempt
// has taken over its store.
func TestSaverOfAFormerAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memoryStore{blobs: make(map[string][]byte)}
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		s, err := startSaver(ctx, store, "j", &checkpointConfig{steps: 1}, hclog.NewNullLogger(), cancel)
		require.NoError(t, err)
		store.setFailure(checkpoint.ErrTaken)
		s.Save("a", cutAt(1, false))
		synctest.Wait()
		require.ErrorIs(t, context.Cause(ctx), checkpoint.ErrTaken)
		tried := store.written()
		s.close(endFailed)
		require.Equal(t, tried, store.written())
		require.Empty(t, store.blobs)
	})
}

// TestSaverKeepsTheNewest requires that a state that could not be written does not replace a newer
// one that waits.
func TestSaverKeepsTheNewest(t *testing.T) {
	saving(t, checkpointConfig{steps: 1}, func(t *testing.T, s *saver, store *memoryStore) {
		store.takes = 10 * time.Second
		store.setFailure(errors.New("no space left"))
		s.Save("a", cutAt(1, false))
		time.Sleep(time.Second)
		s.Save("a", cutAt(2, false))
		time.Sleep(10 * time.Second)
		store.setFailure(nil)
		time.Sleep(time.Hour)
		require.Equal(t, map[string]int{"a": 2}, store.steps(t))
		s.close(endFailed)
	})
}

// TestResumeComparesArguments requires that a run does not continue from the checkpoints of a run
// with other arguments, even if they are not visible in the graph, as functions use them.
func TestResumeComparesArguments(t *testing.T) {
	type args struct {
		N    int
		Rate float64
	}
	job := Define("rated", func(b *Builder, a args) error {
		Collect(numbers(b, a.N), "rows") // a.Rate would be used by a function
		return nil
	})
	dir := t.TempDir()
	c, err := newConfig([]Option{CheckpointDir(dir)})
	require.NoError(t, err)
	ready, err := prepare(job, args{3, 0.5}, c)
	require.NoError(t, err)
	described, err := ready.checkpointed()
	require.NoError(t, err)
	run, err := c.runOf(described)
	require.NoError(t, err)
	store, err := checkpoint.OpenDir(disk.OS(), dir)
	require.NoError(t, err)
	journal, err := checkpoint.Open(t.Context(), store, run)
	require.NoError(t, err)
	_, _, err = journal.Write(t.Context(), nil)
	require.NoError(t, err)
	require.NoError(t, store.Close())
	_, err = Run(t.Context(), job, args{3, 0.25}, CheckpointDir(dir), Resume(true))
	require.ErrorContains(t, err, "this run cannot continue from it: its run had other arguments: Rate")
	result, err := Run(t.Context(), job, args{3, 0.5}, CheckpointDir(dir), Resume(true))
	require.NoError(t, err)
	result.Release()
}

// TestArgumentsOfRunsWithoutCheckpoints requires that arguments that cannot be encoded, such as
// functions, prevent checkpoints and nothing else.
func TestArgumentsOfRunsWithoutCheckpoints(t *testing.T) {
	job := Define("calls", func(b *Builder, size func() int) error {
		Collect(numbers(b, size()), "rows")
		return nil
	})
	size := func() int { return 3 }
	result, err := Run(t.Context(), job, size)
	require.NoError(t, err)
	result.Release()
	_, err = Run(t.Context(), job, size, CheckpointDir(t.TempDir()))
	require.ErrorContains(t, err, "func() int cannot travel")
}
