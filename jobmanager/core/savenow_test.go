package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestAnswersToAFormerJobManager requires that a restarted job manager does not take the answer to a
// request of its predecessor, which the task manager repeats, for the answer to a request of its own.
// Otherwise it would report a savepoint that nobody has made.
func TestAnswersToAFormerJobManager(t *testing.T) {
	register := Registered{Conn: 1, Register: wire.Register{Version: wire.Version, ID: "a", Incarnation: "1", Slots: 1, Executable: anyHash}}
	ref := wire.WorkerRef{Job: "j", Attempt: 1}
	c := New(Config{Started: storyBegin})
	var kept Persist
	// asks passes an event to the core and returns the number of the request that a worker gets, and the
	// number of answers that clients get.
	asks := func(e Event) (request, answers int) {
		for _, effect := range c.Step(time.Second, e) {
			switch e := effect.(type) {
			case Persist:
				spec := kept.Spec
				if kept = e; e.Spec == nil {
					kept.Spec = spec
				}
			case Send:
				if w := e.Message.Worker; w != nil && w.Save != nil {
					request = w.Save.Request
				}
			case SaveAnswered:
				answers++
			}
		}
		return request, answers
	}
	report := func(e wire.WorkerEvent) Event { e.WorkerRef = ref; return Reported{Conn: 1, WorkerEvent: e} }
	asks(register)
	asks(Submitted{ID: "j", Slots: 1, Spec: wire.JobSpec{Run: wire.RunOptions{Checkpoints: &wire.Checkpoints{Dir: "/shared"}}}})
	asks(Persisted{ID: "j", Attempt: 1})
	asks(report(wire.WorkerEvent{Ready: &wire.Ready{Address: "w:1", Fingerprint: "f"}}))
	asks(report(wire.WorkerEvent{Prepared: &wire.Prepared{}}))
	before, _ := asks(SaveAsked{ID: "j", Request: 1, Place: "/one"})
	require.NotZero(t, before)
	_, answers := asks(report(wire.WorkerEvent{Saved: &wire.Saved{Request: before}}))
	require.Equal(t, 1, answers)

	c = New(Config{Started: storyBegin.Add(time.Second), History: []wire.JobInfo{kept.Job}, Resume: map[wire.JobID]Resumable{"j": {Spec: *kept.Spec, Continuation: *kept.Continuation}}})
	register.Running = []wire.WorkerRef{ref}
	asks(SaveAsked{ID: "j", Request: 1, Place: "/two"})
	request, _ := asks(register)
	require.NotZero(t, request)
	_, answers = asks(report(wire.WorkerEvent{Saved: &wire.Saved{Request: before}}))
	require.Zero(t, answers, "request %d was answered by the former job manager's %d", request, before)
	_, answers = asks(report(wire.WorkerEvent{Saved: &wire.Saved{Request: request}}))
	require.Equal(t, 1, answers)
}
