package jobmanager

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestRowsOfALostAttempt requires that followers get no rows of a lost attempt after those of the
// next, and that rows of lost attempts do not count towards the limit.
func TestRowsOfALostAttempt(t *testing.T) {
	s, _ := testSpool(t, 10)
	rows := func(attempt int, text string) error {
		return s.appendOf(attempt, &wire.Event{Output: &wire.Output{Text: []byte(text)}})
	}
	state := func(attempt int, state wire.JobState) {
		require.NoError(t, s.append(&wire.Event{State: &wire.JobInfo{Attempt: attempt, State: state}}))
	}
	state(1, wire.JobRunning)
	require.NoError(t, rows(1, "12345678"))
	require.ErrorIs(t, rows(1, "12345678"), errOverLimit)
	state(1, wire.JobRestarting)
	require.NoError(t, rows(1, "9"), "the client drops the rows of an attempt when the next begins")
	state(2, wire.JobDeploying)
	require.ErrorIs(t, rows(1, "9"), errFormer)
	require.NoError(t, rows(2, "12345678"))
	require.ErrorIs(t, rows(2, "12345678"), errOverLimit)
	state(3, wire.JobCommitting) // another worker finishes the commit
	require.ErrorIs(t, rows(3, "12345678"), errOverLimit)
}

// TestResultsAfterARestart requires that a job that was restarted has the results of its last
// attempt alone, that its lost attempts are shown, and that followers see the restart.
func TestResultsAfterARestart(t *testing.T) {
	t.Parallel()
	m := start(t)
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	spec := specOf(t, 1)
	spec.Restart = wire.Restart{Strategy: wire.RestartFixedDelay, Attempts: 1, Delay: 50 * time.Millisecond}
	id := submit(t, c, spec)
	first := tm.run()
	s := tm.deliver(first.WorkerRef)
	require.NoError(t, s.Send(rowsOf(t, 5, 50, 51)))
	require.NoError(t, s.Send(&wire.Delivery{Output: &wire.Output{Text: []byte("early")}}))
	_, err := s.CloseAndRecv()
	require.NoError(t, err)
	late := tm.deliver(first.WorkerRef)
	require.NoError(t, late.Send(&wire.Delivery{Log: []byte("a line\n")}))
	tm.ended(first.WorkerRef, &wire.Failure{Kind: wire.LostFailure, Message: "killed"})

	second := tm.run()
	require.Equal(t, 2, second.Attempt)
	s = tm.deliver(second.WorkerRef)
	require.NoError(t, s.Send(rowsOf(t, 5, 60)))
	require.NoError(t, s.Send(&wire.Delivery{Output: &wire.Output{Text: []byte("text")}}))
	_, err = s.CloseAndRecv()
	require.NoError(t, err)
	_ = late.Send(rowsOf(t, 5, 52)) // the error may come with the answer
	_, err = late.CloseAndRecv()
	require.ErrorContains(t, err, "attempt 1 of job "+string(id)+" was lost")
	tm.succeed(second.WorkerRef, "")

	story, last := follow(t, c, &wire.FollowRequest{Job: id})
	require.Equal(t, wire.JobFinished, last.State)
	require.Contains(t, story, "restarting")
	info, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
	require.NoError(t, err)
	require.Equal(t, 1, info.Restarts)
	require.Len(t, info.Lost, 1)
	require.Equal(t, 1, info.Lost[0].Number)
	require.Equal(t, "killed (worker 0 on task manager tm-a)", info.Lost[0].Cause)
	reply, err := c.Results(bounded(t), &wire.ResultsRequest{Job: id})
	require.NoError(t, err)
	require.Equal(t, []wire.ResultInfo{{Name: "rows", Kind: wire.ResultRows, Rows: 1}, {Name: "printed", Kind: wire.ResultText, Rows: 1}}, reply.Results)
}
