package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/internal/transport/remote"
	"github.com/superstep-ml/superstep/internal/wire"
)

func one(m wire.ToWorker) []wire.ToWorker { return []wire.ToWorker{m} }

var (
	prepareWord = wire.ToWorker{Prepare: &wire.Prepare{}}
	startWord   = wire.ToWorker{Start: &wire.Start{Addresses: []string{"127.0.0.1:4711"}}}
	commitWord  = wire.ToWorker{Commit: &wire.Commit{Outcomes: [][]byte{[]byte("outcome")}}}
	cancelWord  = wire.ToWorker{Cancel: &wire.Cancel{Reason: "the user asked for it"}}
	exitWord    = wire.ToWorker{Exit: &wire.Exit{}}
)

// TestWorkerLivesThroughAJob requires that a worker that succeeds goes through all states.
func TestWorkerLivesThroughAJob(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	synctest.Test(t, func(t *testing.T) {
		part := &fakePart{}
		environment, plane := fakeEnv(part)
		h := startWorker(t, environment)
		at := 0
		h.say(deployment(spec, 0, 1))
		ready := h.next(&at)
		require.Equal(t, "127.0.0.1:4711", ready.Ready.Address)
		c, err := newConfig([]Option{Shards(16), Parallelism(1)})
		require.NoError(t, err)
		local, err := buildTwice(squares, squaresArgs{N: 4}, c)
		require.NoError(t, err)
		require.Equal(t, local.graph.Fingerprint(), ready.Ready.Fingerprint)
		require.Equal(t, 1, plane.config.rows.Workers)
		require.Equal(t, int64(64<<20), part.env.env.MemoryBudget)

		h.say(prepareWord)
		require.NotNil(t, h.next(&at).Prepared)
		h.say(startWord)
		require.Equal(t, "outcome", string(h.next(&at).Finished.Outcome))
		h.say(commitWord)
		require.NotNil(t, h.next(&at).Committed)
		h.say(exitWord)
		require.Nil(t, h.next(&at))
		require.Equal(t, exitOK, h.end())
		require.Equal(t, []string{"make", "prepare", "run", "commit outcome", "close"}, part.called())
		require.Empty(t, h.exited())
		require.Empty(t, h.stderr.String())
	})
}

func TestWorkerBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		environment, _ := fakeEnv(&fakePart{})
		h := startWorker(t, environment)
		time.Sleep(10*beatEvery + time.Millisecond)
		h.say(exitWord)
		require.Equal(t, exitOK, h.end())
		require.Equal(t, 10, h.beats)
	})
}

// TestWorkerEndsEarly requires that a worker ends properly if it fails, is cancelled or gets an
// unexpected message, in each of its states.
func TestWorkerEndsEarly(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	deploy := deployment(spec, 0, 1)
	broken := errors.New("broken")
	for _, test := range []struct {
		name  string
		part  *fakePart
		block string // the last message is sent during this call
		words []wire.ToWorker
		kind  wire.FailureKind
		want  string // the message of the failure; "" for no failure
		code  int
		calls string

		outputs string // what the failure says about outputs
		retry   bool   // another attempt may succeed
	}{
		{name: "exit before anything", words: one(exitWord)},
		{name: "cancel before anything", words: one(cancelWord), code: 1, kind: wire.PeerFailure, want: "cancelled: the user asked for it"},
		{name: "start before anything", words: one(startWord), code: 1, kind: wire.ClusterFailure,
			want: "the task manager sent Start to a worker that is awaiting: their versions may differ"},
		{name: "nothing known", words: one(wire.ToWorker{}), code: 1, kind: wire.ClusterFailure,
			want: "the task manager sent something unknown to a worker that is awaiting: their versions may differ"},
		{name: "exit when ready", words: []wire.ToWorker{deploy, exitWord}, calls: "make abort close"},
		{name: "cancel when ready", words: []wire.ToWorker{deploy, cancelWord}, code: 1, kind: wire.PeerFailure, want: "cancelled: the user asked for it", calls: "make abort close"},
		{name: "a part that cannot be made", part: &fakePart{fail: map[string]error{"make": broken}}, words: one(deploy), code: 1, kind: wire.ClusterFailure, want: "broken", calls: "make"},
		{name: "start before prepare", words: []wire.ToWorker{deploy, startWord}, code: 1, kind: wire.ClusterFailure,
			want: "the task manager sent Start to a worker that is ready: their versions may differ", calls: "make abort close"},
		{name: "deployed twice", words: []wire.ToWorker{deploy, deploy}, code: 1, kind: wire.ClusterFailure,
			want: "the task manager sent Deployment to a worker that is ready: their versions may differ", calls: "make abort close"},
		{name: "sinks that do not begin", part: &fakePart{fail: map[string]error{"prepare": broken}}, words: []wire.ToWorker{deploy, prepareWord}, code: 1,
			want: "broken (paths of a job are those of its workers, here of task manager host0)", calls: "make prepare abort close"},
		{name: "cancel when prepared", words: []wire.ToWorker{deploy, prepareWord, cancelWord}, code: 1, kind: wire.PeerFailure, want: "cancelled: the user asked for it",
			calls: "make prepare abort close"},
		{name: "exit when prepared", words: []wire.ToWorker{deploy, prepareWord, exitWord}, calls: "make prepare abort close"},
		{name: "too few addresses", words: []wire.ToWorker{deploy, prepareWord, {Start: &wire.Start{}}}, code: 1, kind: wire.ClusterFailure,
			want: "the worker was given 0 addresses, and there are 1 workers", calls: "make prepare abort close"},
		{name: "a run that fails", part: &fakePart{fail: map[string]error{"run": broken}}, words: []wire.ToWorker{deploy, prepareWord, startWord}, code: 1, want: "broken",
			calls: "make prepare run abort close"},
		{name: "a run whose ranks wait in vain", part: &fakePart{fail: map[string]error{"run": fmt.Errorf("no rank has made progress: %w", collective.ErrTimeout)}},
			words: []wire.ToWorker{deploy, prepareWord, startWord}, code: 1, kind: wire.ClusterFailure, retry: true,
			want: "no rank has made progress: timed out", calls: "make prepare run abort close"},
		{name: "a run that fails, and an abort", part: &fakePart{fail: map[string]error{"run": broken, "abort": errors.New("full disk")}},
			words: []wire.ToWorker{deploy, prepareWord, startWord}, code: 1, want: "broken; full disk", calls: "make prepare run abort close"},
		{name: "cancel during the run", block: "run", words: []wire.ToWorker{deploy, prepareWord, startWord, cancelWord}, code: 1, kind: wire.PeerFailure,
			want: "cancelled: the user asked for it", calls: "make prepare run abort close"},
		{name: "cancel while the run ends of damage", part: &fakePart{run: func(ctx context.Context) ([]byte, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("worker 3 sent what was %w", remote.ErrDamaged)
		}}, words: []wire.ToWorker{deploy, prepareWord, startWord, cancelWord}, code: 1, kind: wire.ClusterFailure,
			want: "worker 3 sent what was damaged in transit", calls: "make prepare run abort close"},
		{name: "cancel while the run ends of something else", part: &fakePart{run: func(ctx context.Context) ([]byte, error) {
			<-ctx.Done()
			return nil, broken
		}}, words: []wire.ToWorker{deploy, prepareWord, startWord, cancelWord}, code: 1, kind: wire.PeerFailure,
			want: "cancelled: the user asked for it", calls: "make prepare run abort close"},
		{name: "exit during the run", block: "run", words: []wire.ToWorker{deploy, prepareWord, startWord, exitWord}, code: 1, kind: wire.PeerFailure,
			want: "the worker was told to end", calls: "make prepare run abort close"},
		{name: "prepare during the run", block: "run", words: []wire.ToWorker{deploy, prepareWord, startWord, prepareWord, cancelWord}, code: 1, kind: wire.ClusterFailure,
			want: `the task manager sent Prepare to a worker that is running: their versions may differ`, calls: "make prepare run abort close"},
		{name: "cancel when finished", words: []wire.ToWorker{deploy, prepareWord, startWord, cancelWord}, code: 1, kind: wire.PeerFailure,
			want: "cancelled: the user asked for it", calls: "make prepare run abort close"},
		{name: "exit when finished", words: []wire.ToWorker{deploy, prepareWord, startWord, exitWord}, calls: "make prepare run close"},
		{name: "a commit that fails", part: &fakePart{fail: map[string]error{"commit outcome": broken}}, words: []wire.ToWorker{deploy, prepareWord, startWord, commitWord}, code: 1,
			want: "broken", calls: "make prepare run commit outcome abort close"},
		{name: "a commit of which it is known what is visible", part: &fakePart{fail: map[string]error{"commit outcome": &task.CommitError{Err: broken}}},
			words: []wire.ToWorker{deploy, prepareWord, startWord, commitWord}, code: 1, want: "broken", outputs: "none of its outputs is visible",
			calls: "make prepare run commit outcome abort close"},
		{name: "cancel when committed", words: []wire.ToWorker{deploy, prepareWord, startWord, commitWord, cancelWord}, calls: "make prepare run commit outcome close"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				part := test.part
				if part == nil {
					part = &fakePart{}
				}
				if test.block != "" {
					part.block = map[string]chan struct{}{test.block: make(chan struct{})}
				}
				environment, _ := fakeEnv(part)
				h := startWorker(t, environment)
				for _, m := range test.words {
					h.say(m)
					synctest.Wait()
				}
				require.Equal(t, test.code, h.end())
				require.Empty(t, h.exited())
				require.Equal(t, test.calls, strings.Join(part.called(), " "))
				var failed *wire.Failure
				for i, m := range h.all() {
					if m.Failed != nil {
						require.Equal(t, len(h.all())-1, i, "the failure must be the last message")
						failed = m.Failed
					}
				}
				if test.want == "" {
					require.Nil(t, failed)
					return
				}
				require.Equal(t, test.want, failed.Message)
				require.Equal(t, test.outputs, failed.Outputs)
				require.Equal(t, test.kind, failed.Kind)
				require.Equal(t, test.retry, failed.Retry)
				require.Equal(t, -1, failed.ExitCode)
			})
		})
	}
}

// TestWorkerCommitsThoughCancelled requires that a commit continues after a cancellation or an
// unexpected message, and that the worker reports that it has committed.
func TestWorkerCommitsThoughCancelled(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	for _, test := range []struct {
		word wire.ToWorker
		code int
	}{{cancelWord, exitOK}, {exitWord, exitOK}, {prepareWord, exitFailed}} {
		synctest.Test(t, func(t *testing.T) {
			block := make(chan struct{})
			part := &fakePart{block: map[string]chan struct{}{"commit outcome": block}}
			environment, _ := fakeEnv(part)
			h := startWorker(t, environment)
			for _, m := range []wire.ToWorker{deployment(spec, 0, 1), prepareWord, startWord, commitWord, test.word} {
				h.say(m)
				synctest.Wait()
			}
			time.Sleep(time.Hour)
			close(block)
			require.Equal(t, test.code, h.end())
			said := h.all()
			require.NotNil(t, said[len(said)-1].Committed)
		})
	}
}

// TestWorkerAbandons requires that a worker abandons functions that ignore the end of their
// context after some time, and exits.
func TestWorkerAbandons(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	for _, test := range []struct{ block, want string }{
		{"prepare", "cancelled: the user asked for it; abandoned after 1s: the sinks' begin did not end when the worker was told to"},
		{"run", "cancelled: the user asked for it; abandoned after 1s: the run did not end when the worker was told to"},
		{"abort", "cancelled: the user asked for it; abandoned after 1s: removing what was written did not end when the worker was told to"},
	} {
		t.Run(test.block, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				block := make(chan struct{})
				part := &fakePart{deaf: true, block: map[string]chan struct{}{test.block: block}}
				environment, _ := fakeEnv(part)
				h := startWorker(t, environment)
				began := time.Now()
				words := []wire.ToWorker{deployment(spec, 0, 1), prepareWord, startWord, cancelWord}
				if test.block == "prepare" {
					words = []wire.ToWorker{words[0], prepareWord, cancelWord}
				}
				for _, m := range words {
					h.say(m)
					synctest.Wait()
				}
				require.Equal(t, exitFailed, h.end())
				require.LessOrEqual(t, time.Since(began), 2*time.Second)
				said := h.all()
				require.Equal(t, test.want, said[len(said)-1].Failed.Message)
				require.NotContains(t, part.called(), "close", "a part must not be closed while abandoned functions may use it")
				close(block)
			})
		})
	}
}

// TestWorkerTellsOfAbandonedFunctions requires that the user gets the error of Run about
// abandoned functions.
func TestWorkerTellsOfAbandonedFunctions(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	synctest.Test(t, func(t *testing.T) {
		part := &fakePart{run: func(ctx context.Context) ([]byte, error) {
			<-ctx.Done()
			return nil, &task.AbandonedError{Functions: []string{"operator Map"}, After: time.Second, Err: context.Cause(ctx)}
		}}
		environment, _ := fakeEnv(part)
		h := startWorker(t, environment)
		for _, m := range []wire.ToWorker{deployment(spec, 0, 1), prepareWord, startWord, cancelWord} {
			h.say(m)
			synctest.Wait()
		}
		require.Equal(t, exitFailed, h.end())
		said := h.all()
		last := said[len(said)-1].Failed
		require.Contains(t, last.Message, "cancelled: the user asked for it; abandoned after 1s: operator Map did not return")
		require.Equal(t, wire.PeerFailure, last.Kind)
	})
}

// TestWorkerLeftAlone requires that a worker exits at once when its task manager has ended,
// whatever the worker is doing.
func TestWorkerLeftAlone(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	for _, words := range [][]wire.ToWorker{nil, one(deployment(spec, 0, 1)), {deployment(spec, 0, 1), prepareWord, startWord}} {
		synctest.Test(t, func(t *testing.T) {
			part := &fakePart{block: map[string]chan struct{}{"run": make(chan struct{})}}
			environment, _ := fakeEnv(part)
			h := startWorker(t, environment)
			for _, m := range words {
				h.say(m)
				synctest.Wait()
			}
			began := time.Now()
			h.stdin.Close()
			require.Equal(t, exitFailed, h.end())
			require.Zero(t, time.Since(began))
			require.Equal(t, []int{exitFailed}, h.exited())
			require.Equal(t, "the pipe to the task manager has ended: the worker exits\n", h.stderr.String())
		})
	}
}

// TestWorkerPipes requires that a worker exits if it receives garbage on its pipe, or if nothing
// reads what it sends.
func TestWorkerPipes(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	synctest.Test(t, func(t *testing.T) {
		environment, _ := fakeEnv(&fakePart{})
		h := startWorker(t, environment)
		_, err := io.WriteString(h.stdin, "GET / HTTP/1.1\r\n\r\n")
		_ = err // the worker may have exited before it has read everything
		require.Equal(t, exitFailed, h.end())
		require.Equal(t, []int{exitFailed}, h.exited())
		require.Contains(t, h.stderr.String(), "the pipe to the task manager cannot be read (frame ToWorker: a length of")
	})
	synctest.Test(t, func(t *testing.T) {
		environment, _ := fakeEnv(&fakePart{})
		h := startWorker(t, environment)
		h.stdout.Close()
		require.Equal(t, exitFailed, h.end())
		require.Contains(t, h.stderr.String(), "the pipe to the task manager cannot be written to (")
	})
	synctest.Test(t, func(t *testing.T) {
		environment, _ := fakeEnv(&fakePart{})
		h := startWorker(t, environment)
		resume := h.pause()
		h.say(deployment(spec, 0, 1))
		time.Sleep(time.Minute)
		h.say(exitWord)
		code := <-h.code
		require.Equal(t, exitFailed, code)
		require.Contains(t, h.stderr.String(), "did not read the worker's last message within 5s: the worker exits")
		resume()
		h.stdin.Close()
	})
}

// memPlane is a data plane for one worker.
type memPlane struct{ *transport.Mem }

func (memPlane) Address() string        { return "127.0.0.1:4711" }
func (memPlane) Connect([]string) error { return nil }
func (memPlane) Abandon()               {}
func (memPlane) Port() *peerlink.Port   { return nil }
func (memPlane) Where(int) string       { return "" }

// TestWorkerOfASlowClient requires that a worker waits for a client that reads slowly, and
// buffers no rows for it. When the job is cancelled, senders that wait for the client must end
// at once.
func TestWorkerOfASlowClient(t *testing.T) {
	const n = 1 << 14
	spec := specOf(t, squares, squaresArgs{N: n}, 1)
	spec.Run.BatchRows = 64
	slow := func(t *testing.T) (h *scriptedTaskManager, resume func()) {
		open := func(planeConfig) (dataPlane, error) { return memPlane{transport.NewMem(0)}, nil }
		h = startWorker(t, workerEnv{jobs: []Runnable{squares}, allocator: checked(t), open: open})
		m, at := deployment(spec, 0, 1), 0
		m.Deployment.WorkDir = t.TempDir()
		h.say(m)
		require.NotNil(t, h.next(&at).Ready)
		h.say(prepareWord)
		require.NotNil(t, h.next(&at).Prepared)
		resume = h.pause()
		h.say(startWord)
		time.Sleep(time.Minute)
		require.LessOrEqual(t, len(h.all()), 4, "the worker must wait for its reader and not run to the end")
		return h, resume
	}
	synctest.Test(t, func(t *testing.T) {
		h, resume := slow(t)
		resume()
		at := 2
		finished := h.next(&at).Finished
		require.NotNil(t, finished)
		h.say(wire.ToWorker{Commit: &wire.Commit{Outcomes: [][]byte{finished.Outcome}}})
		require.NotNil(t, h.next(&at).Committed)
		h.say(exitWord)
		require.Equal(t, exitOK, h.end())
		rows, shard := int64(0), 0
		for _, m := range h.all() {
			if m.Collected == nil {
				continue
			}
			require.GreaterOrEqual(t, m.Collected.Shard, shard, "the shards of a subtask must come in order")
			shard = m.Collected.Shard
			r, err := batch.NewStreamReader(bytes.NewReader(m.Collected.Rows), memory.DefaultAllocator)
			require.NoError(t, err)
			rec, err := r.Read()
			require.NoError(t, err)
			require.Equal(t, rows*rows, rec.Column(0).(*array.Int64).Value(0))
			rows += rec.NumRows()
			rec.Release()
			r.Release()
		}
		require.Equal(t, int64(n), rows)
	})
	synctest.Test(t, func(t *testing.T) {
		h, resume := slow(t)
		began := time.Now()
		h.say(cancelWord)
		require.Equal(t, exitFailed, <-h.code)
		require.Equal(t, drainGrace, time.Since(began), "the worker must wait only until the time for reading its last message is over")
		require.Contains(t, h.stderr.String(), "did not read the worker's last message")
		resume()
		h.stdin.Close()
	})
}

// TestWorkerOfAnotherVersion requires that a mismatch of protocol versions is reported in a form
// that every version can read.
func TestWorkerOfAnotherVersion(t *testing.T) {
	for version, want := range map[string]string{
		fmt.Sprint(wire.Version + 1): fmt.Sprintf("the task manager speaks version %d of the protocol and the job's program version %d: upgrade the job's program", wire.Version+1, wire.Version),
		"0":                          fmt.Sprintf("the task manager speaks version 0 of the protocol and the job's program version %d: upgrade the task manager", wire.Version),
		"yes":                        `the environment's SUPERSTEP_WORKER is "yes": want the version of the protocol, a number`,
	} {
		synctest.Test(t, func(t *testing.T) {
			h := startWorker(t, workerEnv{version: version})
			require.Equal(t, exitFailed, h.end())
			said := h.all()
			require.Len(t, said, 1)
			require.Equal(t, want, said[0].Failed.Message)
			require.Equal(t, wire.MisuseFailure, said[0].Failed.Kind)
		})
	}
}

// TestWorkerOutcomeTooLarge requires that a message that is too large fails the worker, but that
// the pipe stays intact.
func TestWorkerOutcomeTooLarge(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	synctest.Test(t, func(t *testing.T) {
		part := &fakePart{run: func(context.Context) ([]byte, error) { return make([]byte, wire.MaxFrame), nil }}
		environment, _ := fakeEnv(part)
		h := startWorker(t, environment)
		for _, m := range []wire.ToWorker{deployment(spec, 0, 1), prepareWord, startWord} {
			h.say(m)
			synctest.Wait()
		}
		require.Equal(t, exitFailed, h.end())
		said := h.all()
		require.Contains(t, said[len(said)-1].Failed.Message, "the worker's report cannot be sent: frame: a message FromWorker of 671")
		require.Equal(t, []string{"make", "prepare", "run", "abort", "close"}, part.called())
	})
}

// TestWorkerDataPlaneFails requires that the subtasks learn of a failure of the data plane, even
// if it comes before their runner exists.
func TestWorkerDataPlaneFails(t *testing.T) {
	p := &fakePart{}
	var f planeFailure
	f.fail(errors.New("worker 3 was lost"))
	require.Empty(t, p.called())
	f.setNotify(p.Fail)
	require.Equal(t, []string{"fail: worker 3 was lost"}, p.called())
	p = &fakePart{}
	f = planeFailure{}
	f.setNotify(p.Fail)
	f.fail(errors.New("worker 2 was lost"))
	require.Equal(t, []string{"fail: worker 2 was lost"}, p.called())
}

func TestWorkerMainOffersJobs(t *testing.T) {
	require.Empty(t, os.Getenv(wire.WorkerEnv))
	before := registeredJobs.Load()
	defer registeredJobs.Store(before)
	registeredJobs.Store(nil)
	require.ErrorContains(t, checkOffered("squares"), `job "squares" cannot run on a cluster, as this program would not know that it is a worker there: call engine.WorkerMain with its jobs first in main, or use engine.Main`)
	WorkerMain()
	require.ErrorContains(t, checkOffered("squares"), `it is not among the jobs that engine.WorkerMain was called with (none)`)
	WorkerMain(squares, nil, (*Job[squaresArgs])(nil), Anonymous(func(*Builder) error { return nil }))
	WorkerMain(squares)
	require.NoError(t, checkOffered("squares"))
	require.ErrorContains(t, checkOffered("cubes"), `(squares): add it there`)
	require.ErrorContains(t, checkOffered(""), `the job has no name`)
}
