package engine

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestWorkerResumesACommit requires that a worker that only finishes a commit builds the job, but
// opens no data plane and runs no subtask.
func TestWorkerResumesACommit(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	for _, c := range []struct {
		name string
		word wire.ToWorker
		want string
		code int
	}{
		{"prepare", prepareWord, "the task manager sent Prepare to a worker that is ready", exitFailed},
		{"start", startWord, "the task manager sent Start to a worker that is ready", exitFailed},
		{"cancel", cancelWord, "cancelled: the user asked for it", exitFailed},
		{"no outcomes", wire.ToWorker{Commit: &wire.Commit{}}, "without an outcome of its workers", exitFailed},
		{"garbage", commitWord, "the outcome of worker 0", exitFailed},
		{"commit", wire.ToWorker{Commit: &wire.Commit{Outcomes: [][]byte{{0x80}}}}, "", exitOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				part := &fakePart{}
				environment, plane := fakeEnv(part)
				h := startWorker(t, environment)
				at := 0
				d := deployment(spec, 0, 1)
				d.Deployment.Mode = wire.CommitMode
				h.say(d)
				ready := h.next(&at).Ready
				require.NotEmpty(t, ready.Fingerprint)
				require.Empty(t, ready.Address)
				h.say(c.word)
				if got := h.next(&at); c.want == "" {
					require.NotNil(t, got.Committed)
					h.say(exitWord)
				} else {
					require.Contains(t, got.Failed.Message, c.want)
				}
				require.Equal(t, c.code, h.end())
				require.Empty(t, part.called())
				require.Zero(t, plane.config)
			})
		})
	}
}

// clientJointSink is a JointSink of the client. No worker may touch its output.
type clientJointSink struct{ lateSink }

func (clientJointSink) Complete(Completion) error { return errors.New("a worker completes it") }
func (clientJointSink) Place() error              { return errors.New("a worker places it") }

var jointly = Define("jointly", func(b *Builder, a squaresArgs) error {
	b.Add(Spec{
		Op: "WriteJointly", Inputs: []Port{{From: numbers(b, a.N)}}, AtClient: true,
		Operator: func() Operator { return swallower{} }, Sink: clientJointSink{},
	})
	return nil
})

// TestWorkerResumesACommitOfTheClient requires that a worker that finishes a commit does not touch the
// outputs that the client writes.
func TestWorkerResumesACommitOfTheClient(t *testing.T) {
	spec := specOf(t, jointly, squaresArgs{N: 4}, 1)
	g, err := plan.DecodeGraph(spec.Graph)
	require.NoError(t, err)
	p, err := plan.Compile(g, 1)
	require.NoError(t, err)
	outcomes, err := outcomesOf(p, jointly, squaresArgs{N: 4})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		environment, _ := fakeEnv(&fakePart{})
		environment.jobs = []Runnable{jointly}
		h := startWorker(t, environment)
		at := 0
		d := deployment(spec, 0, 1)
		d.Deployment.Mode = wire.CommitMode
		h.say(d)
		require.NotNil(t, h.next(&at).Ready)
		h.say(wire.ToWorker{Commit: &wire.Commit{Outcomes: outcomes}})
		got := h.next(&at)
		require.Nil(t, got.Failed)
		require.NotNil(t, got.Committed)
		h.say(exitWord)
		require.Equal(t, exitOK, h.end())
	})
}

// TestWorkerCommitsAfterItsRunAlone requires that a worker that runs subtasks refuses to commit
// before they have ended.
func TestWorkerCommitsAfterItsRunAlone(t *testing.T) {
	spec := specOf(t, squares, squaresArgs{N: 4}, 1)
	synctest.Test(t, func(t *testing.T) {
		part := &fakePart{}
		environment, _ := fakeEnv(part)
		h := startWorker(t, environment)
		at := 0
		h.say(deployment(spec, 0, 1))
		require.NotNil(t, h.next(&at).Ready)
		h.say(commitWord)
		require.Contains(t, h.next(&at).Failed.Message, "sent Commit to a worker that is ready")
		require.Equal(t, exitFailed, h.end())
		require.Equal(t, []string{"make", "abort", "close"}, part.called())
	})
}
