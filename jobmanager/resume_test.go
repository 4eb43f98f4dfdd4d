package jobmanager

import (
	"io"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// committing runs a job until worker 0 has got the command to commit. The worker has not
// answered yet.
func committing(t *testing.T, tm *manager, spec wire.JobSpec) wire.JobID {
	id := submit(t, tm.client, spec)
	d := tm.run()
	s := tm.deliver(d.WorkerRef)
	require.NoError(t, s.Send(collected("rows")))
	require.NoError(t, s.Send(&wire.Delivery{Log: []byte("before\n")}))
	_, err := s.CloseAndRecv()
	require.NoError(t, err)
	tm.says(wire.WorkerEvent{WorkerRef: d.WorkerRef, Finished: &wire.Finished{Outcome: []byte("outcome")}})
	require.NotNil(t, tm.next().Worker.Commit)
	return id
}

// resumes receives the deployment of the worker that resumes a commit, and reports that the
// worker is ready.
func resumes(t *testing.T, tm *manager, want wire.JobSpec) *wire.Deployment {
	d := tm.deployed()
	require.Equal(t, wire.CommitMode, d.Mode)
	require.Equal(t, 2, d.Attempt)
	if want.Artifact == "" { // the client named no executable, so the job manager has chosen one
		want.Artifact, want.Platform, want.Build = hashOf(executable(ownSalt)), linux, "test"
	}
	require.Equal(t, want, d.Spec)
	require.Equal(t, []wire.SlotRange{{Lo: 0, Hi: 1}}, d.Slots)
	require.NotEmpty(t, d.Credential.Secret)
	tm.says(wire.WorkerEvent{WorkerRef: d.WorkerRef, Ready: &wire.Ready{Fingerprint: "f"}})
	require.Equal(t, [][]byte{[]byte("outcome")}, tm.next().Worker.Commit.Outcomes)
	return d
}

// TestCommitGoesOn stops the job manager before worker 0 has reported that it committed. A new
// job manager on the same directory must deploy another worker, which finishes the commit. A
// client that follows the job after that must get everything that was sent before.
func TestCommitGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(c *Config) { c.Dir, c.Lease = dir, 200*time.Millisecond }
	m := start(t, in)
	spec := specOf(t, 1)
	spec.Args, spec.Attached = []byte("args"), true
	spec.Run.IfExists = "replace"
	id := committing(t, join(t, dial(t, m, testToken, nil), registration("a", 1)), spec)
	require.NoError(t, m.Close())

	m = start(t, in, func(c *Config) { c.AttachGrace = time.Millisecond })
	c := dial(t, m, testToken, nil)
	info, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
	require.NoError(t, err)
	require.Equal(t, wire.JobCommitting, info.State)
	require.Contains(t, info.Detail, "the job manager restarted")
	spec.Attached = false // a client cannot stay attached during a restart
	tm := join(t, c, registration("a", 1))
	d := resumes(t, tm, spec)
	s := tm.deliver(d.WorkerRef)
	require.NoError(t, s.Send(&wire.Delivery{Log: []byte("after\n")}))
	_, err = s.CloseAndRecv()
	require.NoError(t, err)
	tm.says(wire.WorkerEvent{WorkerRef: d.WorkerRef, Committed: &wire.Committed{}})
	require.NotNil(t, tm.next().Worker.Exit)
	kept, err := m.history.spec(id)
	require.NoError(t, err)
	require.Nil(t, kept, "the end of the job must be on disk before its worker gets the command to exit")
	tm.ended(d.WorkerRef, nil)
	story, last := follow(t, c, &wire.FollowRequest{Job: id})
	require.Equal(t, wire.JobFinished, last.State)
	require.Equal(t, [][]byte{[]byte("outcome")}, last.Outcomes)
	require.NotEmpty(t, last.Plan)
	require.Contains(t, story, "rows rows")
	require.Equal(t, "before\nafter\n", logsOf(t, c, &wire.LogsRequest{Job: id, Worker: -1, Follow: true}))

	// The job's record must be the same as that of a finished job whose commit was not
	// interrupted.
	require.NoError(t, m.Close())
	m = start(t, in)
	again, _ := follow(t, dial(t, m, testToken, nil), &wire.FollowRequest{Job: id})
	require.Equal(t, story, again)
}

// TestCommitOfALostWorker kills the process of worker 0 while it commits. Another worker must
// finish the commit at once, and the client, which stays connected, must get a state that says
// so.
func TestCommitOfALostWorker(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := start(t, func(c *Config) { c.Dir = dir })
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	spec := specOf(t, 1)
	id := committing(t, tm, spec)
	before := wire.WorkerRef{Job: id, Attempt: 1}
	tm.ended(before, &wire.Failure{Kind: wire.LostFailure, Message: "killed", Signal: "killed", ExitCode: -1})
	d := resumes(t, tm, spec)
	records, err := m.history.all()
	require.NoError(t, err)
	require.Len(t, records, 1)
	require.Equal(t, wire.JobCommitting, records[0].Info.State, "the record must say that the job commits, so that a restart would resume the commit")
	s := tm.deliver(before)
	_, err = s.CloseAndRecv()
	require.ErrorContains(t, err, "is in attempt 2", "a delivery of the former worker must be refused")
	tm.says(wire.WorkerEvent{WorkerRef: before, Committed: &wire.Committed{}})
	require.NotNil(t, tm.next().Worker.Kill)
	tm.says(wire.WorkerEvent{WorkerRef: d.WorkerRef, Committed: &wire.Committed{}})
	require.NotNil(t, tm.next().Worker.Exit)
	tm.ended(d.WorkerRef, nil)
	stream, err := c.Follow(bounded(t), &wire.FollowRequest{Job: id})
	require.NoError(t, err)
	var told []string
	rows := 0
	for {
		e, err := stream.Recv()
		if err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
		if e.State != nil && e.State.State == wire.JobCommitting {
			told = append(told, e.State.Detail)
		}
		if e.Collected != nil {
			rows++
		}
	}
	require.Equal(t, []string{
		"making the results visible",
		"worker 0 on task manager tm-a was lost (killed) while the results were being made visible; going on with that",
		"making the results visible, after the loss of worker 0, from task manager tm-a",
	}, told)
	require.Equal(t, 1, rows, "once")
}

// TestCommitGoesOnWithoutRows truncates the file with the rows for the client before a restart.
// The commit must be finished, and the client must get an error that says that rows are lost.
func TestCommitGoesOnWithoutRows(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(c *Config) { c.Dir, c.Lease = dir, 200*time.Millisecond }
	m := start(t, in)
	id := committing(t, join(t, dial(t, m, testToken, nil), registration("a", 1)), specOf(t, 1))
	require.NoError(t, m.Close())
	require.NoError(t, os.Truncate(dir+"/"+spoolName(id), 20))

	m = start(t, in)
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	d := resumes(t, tm, specOf(t, 1))
	tm.says(wire.WorkerEvent{WorkerRef: d.WorkerRef, Committed: &wire.Committed{}})
	require.NotNil(t, tm.next().Worker.Exit)
	tm.ended(d.WorkerRef, nil)
	stream, err := c.Follow(bounded(t), &wire.FollowRequest{Job: id})
	require.NoError(t, err)
	for err == nil {
		_, err = stream.Recv()
	}
	require.Equal(t, codes.DataLoss, wire.Code(err))
	info, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
	require.NoError(t, err)
	require.Equal(t, wire.JobFinished, info.State)
}

// TestCommitHoldsItsArtifact requires that the job manager keeps the executable of a job as long
// as the job's commit may have to be resumed. If the executable is missing, the job must fail.
func TestCommitHoldsItsArtifact(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		dir := t.TempDir()
		in := func(c *Config) { c.Dir, c.Lease = dir, 200*time.Millisecond }
		m := start(t, in)
		c := dial(t, m, testToken, nil)
		program := executable("resume")
		hash := hashOf(program)
		require.NoError(t, upload(t, c, hash, int64(len(program)), program))
		spec := specOf(t, 1)
		spec.Artifact, spec.Platform = hash, linux
		id := committing(t, join(t, c, registration("a", 1)), spec)
		require.NoError(t, m.Close())
		if gone {
			require.NoError(t, os.Remove(dir+"/artifacts/"+hash))
		}
		m = start(t, in)
		c = dial(t, m, testToken, nil)
		if gone {
			_, last := follow(t, c, &wire.FollowRequest{Job: id})
			require.Equal(t, wire.JobFailed, last.State)
			require.Contains(t, last.Detail, "all, some or none of them may be")
			continue
		}
		require.Equal(t, 1, m.artifacts.Kept[hash].Pins)
		_, err := c.Cancel(bounded(t), &wire.CancelRequest{Job: id})
		require.NoError(t, err)
		_, last := follow(t, c, &wire.FollowRequest{Job: id})
		require.Equal(t, wire.JobCancelled, last.State)
		eventually(t, "the executable is no longer pinned", func() bool {
			m.artifacts.Lock()
			defer m.artifacts.Unlock()
			return m.artifacts.Kept[hash].Pins == 0
		})
	}
}

// TestWorkerStaysUntilTheEndIsKept lets worker 0 commit while the disk of the job manager is
// full. Worker 0 must not get the command to exit, so that it keeps its receipts of the commit.
// Another worker would need the receipts if the job manager stopped before the end of the job
// is on disk.
func TestWorkerStaysUntilTheEndIsKept(t *testing.T) {
	t.Parallel()
	m := start(t)
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	id := committing(t, tm, specOf(t, 1))
	inner := m.recorder.write
	var full atomic.Bool
	full.Store(true)
	m.recorder.put(entry{then: func(error) {
		m.recorder.retry = 50 * time.Millisecond
		m.recorder.write = func(changes []change) error {
			for _, c := range changes {
				if c.ended && full.Load() {
					return errDiskFull
				}
			}
			return inner(changes)
		}
	}})
	require.NoError(t, m.awaitFollowers(bounded(t)))
	worker := wire.WorkerRef{Job: id, Attempt: 1}
	tm.says(wire.WorkerEvent{WorkerRef: worker, Committed: &wire.Committed{}})
	require.Eventually(t, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.jobs[id].final != nil
	}, 20*time.Second, time.Millisecond)
	m.mu.Lock() // the core emits this effect if a worker does not end in time
	m.perform([]core.Effect{core.Send{Conn: m.last, Message: wire.ToTaskManager{Worker: &wire.WorkerCommand{WorkerRef: worker, Kill: &wire.Kill{}}}}})
	m.mu.Unlock()
	full.Store(false)
	require.NotNil(t, tm.next().Worker.Exit, "the worker must get the command to exit, and must not be killed before")
	kept, err := m.history.all()
	require.NoError(t, err)
	require.Equal(t, wire.JobFinished, kept[0].Info.State, "the end of the job must be on disk before its worker gets the command to exit")
	tm.ended(worker, nil)
	_, last := follow(t, c, &wire.FollowRequest{Job: id})
	require.Equal(t, wire.JobFinished, last.State)
}
