package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/engine/origin"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/offheap"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/shared"
)

var errOwn = errors.New("an error of its own")

// keeping returns a deployment after which the worker keeps its process.
func keeping(spec wire.JobSpec, attempt int) wire.ToWorker {
	d := deployment(spec, 0, 1)
	d.Deployment.Keep, d.Deployment.Attempt = true, attempt
	d.Deployment.Spec.Run.Copies = wire.NoCopies // the data plane has no port
	return d
}

// restoreLimits sets the limits of this process, which workers change, back at the end of a test.
func restoreLimits(t *testing.T) {
	processors, memory := runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1)
	t.Cleanup(func() {
		runtime.GOMAXPROCS(processors)
		debug.SetMemoryLimit(memory)
	})
}

// TestKeptRowsCountInTheLimit requires that the memory outside the heap that a process has kept reduces
// the limit of its heap in the next attempt too.
func TestKeptRowsCountInTheLimit(t *testing.T) {
	restoreLimits(t)
	p := &workerProcess{}
	word := deployment(wire.JobSpec{}, 0, 1)
	word.Deployment.Memory = 1 << 40
	debug.SetMemoryLimit(1<<40 + heapMargin)
	p.deployed(word.Deployment)
	rows, err := offheap.New(1 << 20)
	require.NoError(t, err)
	defer rows.Free()
	want := debug.SetMemoryLimit(-1)
	p.deployed(word.Deployment)
	require.Equal(t, want, debug.SetMemoryLimit(-1))
	word.Deployment.Memory *= 2
	p.deployed(word.Deployment)
	require.Equal(t, want+1<<40, debug.SetMemoryLimit(-1))
}

// startPrepared starts a worker that keeps its process, up to the state in which its sinks have begun.
// It returns the number of its messages so far.
func startPrepared(t *testing.T, environment workerEnv, spec wire.JobSpec) (h *scriptedTaskManager, at int) {
	h = startWorker(t, environment)
	h.say(keeping(spec, 1))
	require.NotNil(t, h.next(&at).Ready)
	h.say(prepareWord)
	require.NotNil(t, h.next(&at).Prepared)
	return h, at
}

// TestWorkerIsKept requires that a worker whose attempt ends because of other workers aborts it, says
// so, and then runs the next attempt in the same process, as often as it is told to.
func TestWorkerIsKept(t *testing.T) {
	restoreLimits(t)
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	lost := &peerlink.PeerError{Rank: 1, Reason: "has ended"}
	for _, how := range []string{"peer", "cancel"} {
		t.Run(how, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				part := &fakePart{}
				environment, _ := fakeEnv(part)
				at := 0
				var dirs []string
				environment.enter = func(dir, _ string) (missing, err error) { dirs = append(dirs, dir); return nil, nil }
				h := startWorker(t, environment)
				for attempt := 1; attempt <= 3; attempt++ {
					part.mu.Lock()
					part.calls, part.run = nil, func(ctx context.Context) ([]byte, error) {
						if how == "peer" {
							return nil, lost
						}
						<-ctx.Done()
						return nil, context.Cause(ctx)
					}
					part.mu.Unlock()
					if attempt > 1 { // late messages for the attempt before
						h.say(cancelWord)
						h.say(wire.ToWorker{Save: &wire.Save{Request: 1}})
					}
					word := keeping(spec, attempt)
					word.Deployment.Spec.Dir, word.Deployment.WorkDir = "", fmt.Sprint("work", attempt)
					h.say(word)
					require.NotNil(t, h.next(&at).Ready)
					h.say(prepareWord)
					require.NotNil(t, h.next(&at).Prepared)
					h.say(startWord)
					if how == "cancel" {
						h.say(wire.ToWorker{Cancel: &wire.Cancel{Reason: "the attempt was lost", Keep: true}})
					}
					require.Equal(t, wire.PeerFailure, h.next(&at).Failed.Kind)
					require.NotNil(t, h.next(&at).Kept)
					require.Equal(t, []string{"make", "prepare", "run", "abort", "close"}, part.called())
				}
				h.say(exitWord)
				require.Nil(t, h.next(&at))
				require.Equal(t, exitOK, h.end())
				require.Empty(t, h.stderr.String())
				require.Equal(t, []string{"work2", "work3"}, dirs, "the first directory is gone")
			})
		})
	}
}

// TestWorkerIsNotKept requires that the process of a worker ends with its attempt if another attempt
// in it could not be trusted, or nobody wants one.
func TestWorkerIsNotKept(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	lost := &peerlink.PeerError{Rank: 1, Reason: "has ended"}
	withoutKeep := deployment(spec, 0, 1)
	for _, c := range []struct {
		name   string
		deploy wire.ToWorker
		part   *fakePart
		words  []wire.ToWorker
	}{
		{name: "not asked for", deploy: withoutKeep, part: &fakePart{fail: map[string]error{"run": lost}}, words: []wire.ToWorker{prepareWord, startWord}},
		{name: "an error of its own", deploy: keeping(spec, 1), part: &fakePart{fail: map[string]error{"run": errOwn}}, words: []wire.ToWorker{prepareWord, startWord}},
		{name: "cancelled for good", deploy: keeping(spec, 1), part: &fakePart{}, words: []wire.ToWorker{prepareWord, cancelWord}},
		{name: "output is left over", deploy: keeping(spec, 1), part: &fakePart{fail: map[string]error{"run": lost, "abort": errOwn}}, words: []wire.ToWorker{prepareWord, startWord}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				environment, _ := fakeEnv(c.part)
				h := startWorker(t, environment)
				at := 0
				h.say(c.deploy)
				require.NotNil(t, h.next(&at).Ready)
				for i, m := range c.words {
					h.say(m)
					if i == 0 {
						require.NotNil(t, h.next(&at).Prepared)
					}
				}
				require.NotNil(t, h.next(&at).Failed)
				require.Nil(t, h.next(&at), "it ends, and does not say that it is kept")
				require.Equal(t, exitFailed, h.end())
			})
		})
	}
}

// TestWorkerThatDoesNotStopIsNotKept requires that functions of the job which go on prevent the next
// attempt in their process.
func TestWorkerThatDoesNotStopIsNotKept(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		part := &fakePart{deaf: true, block: map[string]chan struct{}{"run": release}}
		environment, _ := fakeEnv(part)
		h, at := startPrepared(t, environment, spec)
		h.say(startWord)
		h.say(wire.ToWorker{Cancel: &wire.Cancel{Reason: "the attempt was lost", Keep: true}})
		require.Contains(t, h.next(&at).Failed.Message, "did not end")
		require.Nil(t, h.next(&at))
		require.Equal(t, exitFailed, h.end())
		close(release)
	})
}

// TestWorkerThatFailsWhileCancelledIsNotKept requires that a worker whose own code has failed just before
// it is told to stop does not keep its process.
func TestWorkerThatFailsWhileCancelledIsNotKept(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	synctest.Test(t, func(t *testing.T) {
		environment, _ := fakeEnv(&fakePart{run: func(ctx context.Context) ([]byte, error) {
			<-ctx.Done()
			return nil, errOwn
		}})
		h, at := startPrepared(t, environment, spec)
		h.say(startWord)
		h.say(wire.ToWorker{Cancel: &wire.Cancel{Reason: "the attempt was lost", Keep: true}})
		require.Equal(t, wire.PeerFailure, h.next(&at).Failed.Kind)
		if more := h.next(&at); more != nil {
			h.say(exitWord)
			require.Fail(t, "the process is kept")
		}
		require.Equal(t, exitFailed, h.end())
	})
}

// TestCancelIsNoCause requires that an error with which a rank of a cancelled worker ends the ranks of other workers
// counts there as the consequence that it is, so that their processes are kept.
func TestCancelIsNoCause(t *testing.T) {
	for _, cause := range []error{cancelled(""), cancelled("the job gets other workers"), errStopRequested} {
		require.True(t, task.FollowsPeer(fmt.Errorf("rank 1 was cancelled: %w", cause)), "%v", cause)
		require.Equal(t, wire.PeerFailure, kindOf(cause))
	}
}

// TestWorkersLearnWhatIsHeld requires that what workers hold reaches the part of the plan, and that
// damaged holdings fail the worker.
func TestWorkersLearnWhatIsHeld(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	synctest.Test(t, func(t *testing.T) {
		part := &fakePart{}
		environment, _ := fakeEnv(part)
		h := startWorker(t, environment)
		at := 0
		h.say(keeping(spec, 1))
		require.Nil(t, h.next(&at).Ready.Held)
		h.say(prepareWord)
		require.NotNil(t, h.next(&at).Prepared)
		held, err := origin.Encode(origin.Held{Rows: []byte("rows")})
		require.NoError(t, err)
		start := startWord
		start.Start = &wire.Start{Addresses: startWord.Start.Addresses, Held: [][]byte{held}}
		h.say(start)
		require.NotNil(t, h.next(&at).Finished)
		require.Contains(t, part.called(), `continue ["rows"]`)
		h.say(cancelWord)
		require.Equal(t, exitFailed, h.end())
	})
	synctest.Test(t, func(t *testing.T) {
		environment, _ := fakeEnv(&fakePart{})
		h, at := startPrepared(t, environment, spec)
		start := startWord
		start.Start = &wire.Start{Addresses: startWord.Start.Addresses, Held: [][]byte{{0xc1}}}
		h.say(start)
		require.Contains(t, h.next(&at).Failed.Message, "what worker 0 has kept of earlier attempts")
		require.Equal(t, exitFailed, h.end())
	})
}

// TestWorkersContinueAlike requires that a worker fails if it cannot continue a queue from the state in
// memory from which the others may continue it.
func TestWorkersContinueAlike(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	synctest.Test(t, func(t *testing.T) {
		environment, _ := fakeEnv(&fakePart{})
		h, at := startPrepared(t, environment, spec)
		start := startWord
		start.Start = &wire.Start{Addresses: startWord.Start.Addresses, Origin: &wire.Origin{Queues: []wire.OriginQueue{{Name: "means", Superstep: 3, InMemory: true}}}}
		h.say(start)
		require.Contains(t, h.next(&at).Failed.Message, "the worker was not told who has that state")
		require.Equal(t, exitFailed, h.end())
	})
}

// TestCopiedReportsAreHeld requires that a process which has a copy of the report of a queue says so, and
// that damaged reports are errors.
func TestCopiedReportsAreHeld(t *testing.T) {
	report, err := shared.Msgpack[task.QueueReport]().Append(nil, task.QueueReport{Name: "q", Supersteps: 3})
	require.NoError(t, err)
	for _, c := range []struct {
		queue, want string
		report      []byte
	}{{"q", "", report}, {"r", `the report of queue "r": it is that of queue "q"`, report}, {"q", `the report of queue "q": `, report[1:]}} {
		p := &workerProcess{retained: task.NewRetained(), copies: &copies.Store{}}
		defer func() { require.NoError(t, p.retained.Close()) }()
		require.NoError(t, p.copies.Put(origin.ReportOf(c.queue), 0, c.report))
		data, err := p.held()
		if c.want != "" {
			require.ErrorContains(t, err, c.want)
			continue
		}
		require.NoError(t, err)
		h, err := origin.Decode(0, data)
		require.NoError(t, err)
		require.Contains(t, string(h.Rows), "q", "the report is among what the process has retained")
	}
}
