package jobmanager

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestJobLives runs a job from its submission to its end, and checks what its client, its task
// manager and a client that reads it later receive.
func TestJobLives(t *testing.T) {
	m := start(t)
	c := dial(t, m, testToken, nil)
	id := submit(t, c, specOf(t, 2))
	require.Regexp(t, `^\d{8}-\d{6}-demo-[0-9a-f]{4}$`, string(id))

	waits, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
	require.NoError(t, err)
	require.NotEmpty(t, waits.Plan)
	first, err := c.Follow(bounded(t), &wire.FollowRequest{Job: id})
	require.NoError(t, err)
	e, err := first.Recv()
	require.NoError(t, err)
	require.Equal(t, waits.Plan, e.State.Plan)

	type told struct {
		story []string
		last  *wire.JobInfo
	}
	live := make(chan told, 1)
	go func() {
		story, last := follow(t, c, &wire.FollowRequest{Job: id, Attach: true})
		live <- told{story, last}
	}()
	tm := join(t, c, registration("a", 2))
	d := tm.run()
	require.Equal(t, []wire.SlotRange{{Lo: 0, Hi: 2}}, d.Slots)
	require.Len(t, d.Credential.Secret, 32)
	require.NotEqual(t, make([]byte, 32), d.Credential.Secret)
	require.Empty(t, d.Credential.Certificate)
	s := tm.deliver(d.WorkerRef)
	require.NoError(t, s.Send(collected("one")))
	require.NoError(t, s.Send(&wire.Delivery{Output: &wire.Output{Text: []byte("hello")}}))
	require.NoError(t, s.Send(&wire.Delivery{Log: []byte("line 1\nline 2\n")}))
	require.NoError(t, s.Send(collected("two")))
	_, err = s.CloseAndRecv()
	require.NoError(t, err)
	tm.says(wire.WorkerEvent{WorkerRef: d.WorkerRef, Progress: &wire.Progress{
		Vertices: []wire.VertexProgress{{Rows: 10, ShardsDone: 8}}, Queues: []wire.QueueProgress{{Superstep: 3, Compute: 1.5, Communicate: 0.5}}}})
	eventually(t, "the supersteps are counted in Stats", func() bool { return m.Stats().Supersteps == 3 })
	tm.succeed(d.WorkerRef, "outcome")

	want := []string{"waiting", "waiting", "deploying", "running", "rows one", "text hello", "rows two", "committing", "finished"}
	got := <-live
	require.Equal(t, want, got.story)
	story, last := follow(t, c, &wire.FollowRequest{Job: id})
	require.Equal(t, want, story)
	require.Equal(t, got.last.Ended.UnixNano(), last.Ended.UnixNano())
	for from := range uint64(len(want) + 3) {
		story, _ = follow(t, c, &wire.FollowRequest{Job: id, From: from})
		require.Equal(t, want[min(max(int(from), 1)-1, len(want)):], append([]string{}, story...))
	}

	require.Equal(t, [][]byte{[]byte("outcome")}, last.Outcomes)
	p, err := plan.DecodePlan(last.Plan)
	require.NoError(t, err)
	require.Equal(t, 2, p.Slots)
	shown, err := c.Show(bounded(t), &wire.ShowRequest{Job: id[:20]})
	require.NoError(t, err)
	require.Equal(t, id, shown.ID)
	require.Equal(t, last.Plan, shown.Plan)
	require.Equal(t, last.Outcomes, shown.Outcomes)
	require.EqualValues(t, 10, shown.Progress.Vertices[0].Rows)
	require.Equal(t, "line 1\nline 2\n", logsOf(t, c, &wire.LogsRequest{Job: id, Worker: -1}))
	require.Empty(t, logsOf(t, c, &wire.LogsRequest{Job: id, Worker: 1}))

	stats := m.Stats()
	require.EqualValues(t, 1, stats.Ended[wire.JobFinished])
	require.EqualValues(t, 3, stats.Supersteps)
	require.Equal(t, 1.5, stats.Compute)
	require.EqualValues(t, 10, stats.Rows)
	require.EqualValues(t, len("one")+len("two")+len("hello"), stats.ResultBytes)
	require.Equal(t, 2, stats.Slots)
	eventually(t, "slots are free", func() bool { return m.Stats().Free == 2 })
	eventually(t, "the job is no longer in m.jobs", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.jobs) == 0 })
	story, _ = follow(t, c, &wire.FollowRequest{Job: id})
	require.Equal(t, want, story)
}

// logsOf reads a job's logs.
func logsOf(t testing.TB, c *wire.Client, req *wire.LogsRequest) (text string) {
	stream, err := c.Logs(bounded(t), req)
	require.NoError(t, err)
	for {
		chunk, err := stream.Recv()
		if err != nil {
			require.ErrorContains(t, err, "EOF")
			return text
		}
		require.Equal(t, "tm-a", chunk.TaskManager)
		text += string(chunk.Text)
	}
}

func TestLogsFollowed(t *testing.T) {
	m := start(t, func(c *Config) { c.MaxLog = 4000 })
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	id := submit(t, c, specOf(t, 1))
	d := tm.run()
	followed := make(chan string, 1)
	go func() { followed <- logsOf(t, c, &wire.LogsRequest{Job: id, Worker: 0, Follow: true}) }()
	s := tm.deliver(d.WorkerRef)
	var all strings.Builder
	for i := range 1000 {
		line := fmt.Sprintf("line %d\n", i)
		all.WriteString(line)
		require.NoError(t, s.Send(&wire.Delivery{Log: []byte(line)}))
	}
	_, err := s.CloseAndRecv()
	require.NoError(t, err)
	late := logsOf(t, c, &wire.LogsRequest{Job: id, Worker: -1})
	require.Regexp(t, `^\[\d+ bytes that worker 0 wrote before this are not kept\]\nline `, late)
	require.True(t, strings.HasSuffix(all.String(), late[strings.IndexByte(late, '\n')+1:]))
	tm.succeed(d.WorkerRef, "")
	text := <-followed
	require.True(t, strings.HasSuffix(text, "line 999\n"))
}

func TestCancel(t *testing.T) {
	m := start(t)
	c := dial(t, m, testToken, nil)
	waiting := submit(t, c, specOf(t, 1))
	reply, err := c.Cancel(bounded(t), &wire.CancelRequest{Job: waiting, Reason: "no more wanted"})
	require.NoError(t, err)
	require.Equal(t, wire.JobCancelled, reply.Job.State)
	_, last := follow(t, c, &wire.FollowRequest{Job: waiting})
	require.Equal(t, "cancelled: no more wanted", last.Detail)

	tm := join(t, c, registration("a", 1))
	running := submit(t, c, specOf(t, 1))
	d := tm.run()
	reply, err = c.Cancel(bounded(t), &wire.CancelRequest{Job: running})
	require.NoError(t, err)
	require.Equal(t, wire.JobCancelling, reply.Job.State)
	require.NotNil(t, tm.next().Worker.Cancel)
	tm.ended(d.WorkerRef, nil)
	story, _ := follow(t, c, &wire.FollowRequest{Job: running})
	require.Equal(t, []string{"cancelling", "cancelled"}, story[len(story)-2:])
	reply, err = c.Cancel(bounded(t), &wire.CancelRequest{Job: running})
	require.NoError(t, err)
	require.Equal(t, wire.JobCancelled, reply.Job.State, "a second cancellation must change nothing")
}

// TestAttachedClientGone requires that an attached job is cancelled if its client disconnects,
// and continues if the client reconnects in time.
func TestAttachedClientGone(t *testing.T) {
	t.Parallel()
	m := start(t, func(c *Config) { c.AttachGrace = 700 * time.Millisecond })
	c := dial(t, m, testToken, nil)
	spec := specOf(t, 1)
	spec.Attached = true
	id := submit(t, c, spec)
	for range 3 {
		ctx, cancel := context.WithCancel(bounded(t))
		stream, err := c.Follow(ctx, &wire.FollowRequest{Job: id, Attach: true})
		require.NoError(t, err)
		_, err = stream.Recv()
		require.NoError(t, err)
		cancel()
	}
	shown, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
	require.NoError(t, err)
	require.Equal(t, wire.JobWaiting, shown.State)
	story, last := follow(t, c, &wire.FollowRequest{Job: id}) // another client, which only follows the job
	require.Equal(t, "cancelled", story[len(story)-1])
	require.Equal(t, fmt.Sprintf("cancelled: its client went away and was not back within %s", m.Config().AttachGrace), last.Detail)

	never := submit(t, c, spec)
	_, last = follow(t, c, &wire.FollowRequest{Job: never})
	require.Equal(t, wire.JobCancelled, last.State)
	detached := submit(t, c, specOf(t, 1))
	shown, err = c.Show(bounded(t), &wire.ShowRequest{Job: detached})
	require.NoError(t, err)
	require.Equal(t, wire.JobWaiting, shown.State)
}

// TestAttachedClientStays requires that an attached job continues as long as its client is
// connected.
func TestAttachedClientStays(t *testing.T) {
	t.Parallel()
	m := start(t, func(c *Config) { c.AttachGrace = 300 * time.Millisecond })
	c := dial(t, m, testToken, nil)
	spec := specOf(t, 1)
	spec.Attached = true
	watched := submit(t, c, spec)
	stream, err := c.Follow(bounded(t), &wire.FollowRequest{Job: watched, Attach: true})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	for range 2 { // each round takes longer than the grace period
		_, last := follow(t, c, &wire.FollowRequest{Job: submit(t, c, spec)})
		require.Equal(t, wire.JobCancelled, last.State)
	}
	shown, err := c.Show(bounded(t), &wire.ShowRequest{Job: watched})
	require.NoError(t, err)
	require.Equal(t, wire.JobWaiting, shown.State)
}

// TestStandstillIsNoAbsence requires that time in which the process of the job manager was
// stopped does not count as time without a client.
func TestStandstillIsNoAbsence(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64 // offset of the clock
	m := start(t, func(c *Config) {
		c.AttachGrace = time.Minute
		c.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	c := dial(t, m, testToken, nil)
	spec := specOf(t, 1)
	spec.Attached = true
	id := submit(t, c, spec)
	ahead.Store(int64(time.Hour))
	eventually(t, "the job manager has checked for absent clients", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.turns.Gap(m.clock(), time.Minute) == 0
	})
	shown, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
	require.NoError(t, err)
	require.Equal(t, wire.JobWaiting, shown.State)
}

// TestSlowFollower has a client that stops reading. Neither the job nor other clients may be
// delayed, and the job manager must close the connection of the client.
func TestSlowFollower(t *testing.T) {
	t.Parallel()
	m := start(t, func(c *Config) { c.WriteTimeout = time.Second })
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	id := submit(t, c, specOf(t, 1))
	m.mu.Lock()
	j := m.jobs[id]
	m.mu.Unlock()
	d := tm.run()
	slow, err := dial(t, m, testToken, nil).Follow(bounded(t), &wire.FollowRequest{Job: id})
	require.NoError(t, err)
	_, err = slow.Recv()
	require.NoError(t, err)
	s := tm.deliver(d.WorkerRef)
	piece := strings.Repeat("x", 1<<20)
	for range 16 { // more rows than the buffers of the connection can hold
		require.NoError(t, s.Send(collected(piece)))
	}
	_, err = s.CloseAndRecv()
	require.NoError(t, err)
	tm.succeed(d.WorkerRef, "")
	story, _ := follow(t, c, &wire.FollowRequest{Job: id})
	require.Equal(t, "finished", story[len(story)-1])
	eventually(t, "the job manager has given up the slow client", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return j.readers == 0
	})
	for err == nil { // the client still gets what was on its way
		_, err = slow.Recv()
	}
	require.Equal(t, codes.DeadlineExceeded, wire.Code(err))
	require.ErrorContains(t, err, "did nothing for 1s")
}

// TestProgressIsRare requires that followers receive progress at most once per progressEvery,
// and that they always receive the last report.
func TestProgressIsRare(t *testing.T) {
	var ahead atomic.Int64 // time of a clock that only the test advances
	zero := time.Now()
	m := start(t, func(c *Config) { c.Now = func() time.Time { return zero.Add(time.Duration(ahead.Load())) } })
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	id := submit(t, c, specOf(t, 1))
	d := tm.run()
	m.mu.Lock()
	j := m.jobs[id]
	m.mu.Unlock()
	report := func(rows int64) {
		tm.says(wire.WorkerEvent{WorkerRef: d.WorkerRef, Progress: &wire.Progress{Vertices: []wire.VertexProgress{{Rows: rows}}}})
		eventually(t, "the job manager has received the report", func() bool {
			m.mu.Lock()
			defer m.mu.Unlock()
			p := m.core.Progress(id)
			return p != nil && p.Vertices[0].Rows == rows
		})
		m.mu.Lock()
		defer m.mu.Unlock()
		m.tellProgress() // every tick calls this
	}
	told := func() (rows int64, times uint64) {
		v := j.spool.view()
		return v.progress.Vertices[0].Rows, v.steps
	}
	for rows := range int64(5) {
		report(rows)
		at, times := told()
		require.Zero(t, at, "the first report must be sent at once, and the others not before progressEvery")
		require.EqualValues(t, 1, times)
	}
	ahead.Store(int64(progressEvery))
	eventually(t, "the last report is sent to followers", func() bool { rows, _ := told(); return rows == 4 })
	_, times := told()
	require.EqualValues(t, 2, times)
	stream, err := c.Follow(bounded(t), &wire.FollowRequest{Job: id})
	require.NoError(t, err)
	for {
		e, err := stream.Recv()
		require.NoError(t, err)
		if e.Progress != nil {
			require.EqualValues(t, 4, e.Progress.Vertices[0].Rows)
			break
		}
	}
}

// TestOutcomesTooLarge requires that a job fails if the outcomes of its workers do not fit into
// one message to the worker that commits.
func TestOutcomesTooLarge(t *testing.T) {
	m := start(t)
	m.mu.Lock()
	m.outcomes = 1000
	m.mu.Unlock()
	c := dial(t, m, testToken, nil)
	a, b := join(t, c, registration("a", 1)), join(t, c, registration("b", 1))
	id := submit(t, c, specOf(t, 2))
	refs := map[*manager]wire.WorkerRef{}
	for _, tm := range []*manager{a, b} {
		refs[tm] = tm.deployed().WorkerRef
		tm.says(wire.WorkerEvent{WorkerRef: refs[tm], Ready: &wire.Ready{Address: "x:1", Fingerprint: "f"}})
	}
	require.NotNil(t, a.next().Worker.Prepare)
	a.says(wire.WorkerEvent{WorkerRef: refs[a], Prepared: &wire.Prepared{}})
	for _, tm := range []*manager{a, b} {
		require.NotNil(t, tm.next().Worker.Start)
		tm.says(wire.WorkerEvent{WorkerRef: refs[tm], Finished: &wire.Finished{Outcome: make([]byte, 600)}})
	}
	for _, tm := range []*manager{a, b} {
		require.NotNil(t, tm.next().Worker.Cancel)
		tm.ended(refs[tm], nil)
	}
	_, last := follow(t, c, &wire.FollowRequest{Job: id})
	require.Equal(t, wire.JobFailed, last.State)
	require.Contains(t, last.Failure.Message, "accumulators")
}

// TestResultLimit requires that a job that sends more than MaxResult bytes fails, and that the
// message advises the user.
func TestResultLimit(t *testing.T) {
	m := start(t, func(c *Config) { c.MaxResult = 100 })
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	id := submit(t, c, specOf(t, 1))
	d := tm.run()
	s := tm.deliver(d.WorkerRef)
	require.NoError(t, s.Send(collected(strings.Repeat("x", 60))))
	require.NoError(t, s.Send(collected(strings.Repeat("y", 60))))
	_, err := s.CloseAndRecv()
	require.Equal(t, codes.ResourceExhausted, wire.Code(err))
	require.NotNil(t, tm.next().Worker.Cancel)
	tm.ended(d.WorkerRef, nil)
	_, last := follow(t, c, &wire.FollowRequest{Job: id})
	require.Equal(t, wire.JobFailed, last.State)
	require.Contains(t, last.Failure.Message, "--max-result")
	require.Equal(t, "tm-a", last.Failure.TaskManager)
}

func TestDeliveriesRefused(t *testing.T) {
	m := start(t)
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	submit(t, c, specOf(t, 1))
	d := tm.run()
	ref := d.WorkerRef
	for name, ref := range map[string]wire.WorkerRef{
		"unknown job":   {Job: "nope", Attempt: 1},
		"old attempt":   {Job: ref.Job, Attempt: 0},
		"later attempt": {Job: ref.Job, Attempt: 2},
		"no worker":     {Job: ref.Job, Attempt: 1, Worker: 1},
		"negative":      {Job: ref.Job, Attempt: 1, Worker: -1},
	} {
		s := tm.deliver(ref)
		_, err := s.CloseAndRecv()
		require.Contains(t, []codes.Code{codes.NotFound, codes.FailedPrecondition}, wire.Code(err), name)
	}
	s, err := c.Deliver(bounded(t))
	require.NoError(t, err)
	require.NoError(t, s.Send(collected("whose?")))
	_, err = s.CloseAndRecv()
	require.Equal(t, codes.InvalidArgument, wire.Code(err))
	tm.succeed(ref, "")
	eventually(t, "deliveries for the job are refused", func() bool {
		_, err := tm.deliver(ref).CloseAndRecv()
		return wire.Code(err) == codes.NotFound
	})
}

// TestGraphResolvedByWorker requires that if the client cannot resolve the graph, a worker
// resolves it and the job manager compiles it.
func TestGraphResolvedByWorker(t *testing.T) {
	m := start(t)
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 2))
	spec := specOf(t, 2)
	graph := spec.Graph
	spec.Graph = nil
	id := submit(t, c, spec)
	d := tm.deployed()
	require.Equal(t, wire.ResolveMode, d.Mode)
	shown, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
	require.NoError(t, err)
	require.Empty(t, shown.Plan)
	tm.says(wire.WorkerEvent{WorkerRef: d.WorkerRef, Resolved: &wire.Resolved{Graph: graph}})
	require.NotNil(t, tm.next().Worker.Exit)
	tm.ended(d.WorkerRef, nil)
	d = tm.run()
	require.Equal(t, graph, d.Spec.Graph)
	tm.succeed(d.WorkerRef, "")
	story, last := follow(t, c, &wire.FollowRequest{Job: id})
	require.Equal(t, "resolving", story[0])
	require.Equal(t, "finished", story[len(story)-1])
	require.NotEmpty(t, last.Plan)
	require.Equal(t, graph, last.Graph, "the final state must have the graph, as the client could not build it")

	submit(t, c, spec)
	d = tm.deployed()
	tm.says(wire.WorkerEvent{WorkerRef: d.WorkerRef, Resolved: &wire.Resolved{Graph: graphOf(t, "other", 8)}})
	require.NotNil(t, tm.next().Worker.Exit)
	tm.ended(d.WorkerRef, nil)
	_, last = follow(t, c, &wire.FollowRequest{Job: d.Job})
	require.Equal(t, wire.JobFailed, last.State)
	require.Contains(t, last.Failure.Message, `it is of job "other"`)
}

// TestRestart requires that after a restart, ended jobs are listed as before. A job that was
// running, and whose task manager does not come back, must fail with a message that says why.
func TestRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(c *Config) { c.Dir, c.Lease = dir, 200*time.Millisecond }
	m := start(t, in)
	c := dial(t, m, testToken, nil)
	tm := join(t, c, registration("a", 1))
	finished := submit(t, c, specOf(t, 1))
	d := tm.run()
	s := tm.deliver(d.WorkerRef)
	require.NoError(t, s.Send(collected("kept")))
	require.NoError(t, s.Send(&wire.Delivery{Log: []byte("a line\n")}))
	_, err := s.CloseAndRecv()
	require.NoError(t, err)
	tm.succeed(d.WorkerRef, "outcome")
	before, lastBefore := follow(t, c, &wire.FollowRequest{Job: finished})
	running := submit(t, c, specOf(t, 1))
	d = tm.run()
	s = tm.deliver(d.WorkerRef)
	require.NoError(t, s.Send(collected("half")))
	eventually(t, "the rows are stored", func() bool { return m.Stats().ResultBytes == 8 })
	_, err = New(context.Background(), Config{Dir: dir, Listen: "127.0.0.1:0", Token: testToken})
	require.ErrorContains(t, err, "another job manager")
	require.NoError(t, m.Close())
	select {
	case <-m.Done():
	default:
		t.Fatal("Done is not closed after Close")
	}

	m = start(t, in)
	c = dial(t, m, testToken, nil)
	list, err := c.List(bounded(t), &wire.ListRequest{})
	require.NoError(t, err)
	require.Len(t, list.Jobs, 2)
	story, last := follow(t, c, &wire.FollowRequest{Job: finished})
	require.Equal(t, before, story)
	require.Equal(t, lastBefore.Outcomes, last.Outcomes)
	require.Equal(t, lastBefore.Plan, last.Plan)
	require.Equal(t, "a line\n", logsOf(t, c, &wire.LogsRequest{Job: finished, Worker: -1, Follow: true}))
	story, last = follow(t, c, &wire.FollowRequest{Job: running})
	require.Equal(t, "failed", story[len(story)-1]) // the job's rows may have been freed already
	require.Contains(t, last.Failure.Message, "job manager restarted")
	list, err = c.List(bounded(t), &wire.ListRequest{States: []wire.JobState{wire.JobFailed}})
	require.NoError(t, err)
	require.Len(t, list.Jobs, 1)

	// Missing rows must be reported.
	require.NoError(t, m.Close())
	require.NoError(t, os.Truncate(dir+"/"+spoolName(finished), 20))
	m = start(t, in)
	stream, err := dial(t, m, testToken, nil).Follow(bounded(t), &wire.FollowRequest{Job: finished})
	require.NoError(t, err)
	for err == nil {
		_, err = stream.Recv()
	}
	require.Equal(t, codes.DataLoss, wire.Code(err))
}

// TestEndsWithContext requires that a job manager stops when its context is done.
func TestEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	m, err := New(ctx, Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", Token: testToken})
	require.NoError(t, err)
	require.NoError(t, m.Ready())
	stream, err := dial(t, m, testToken, nil).Connect(bounded(t))
	require.NoError(t, err)
	eventually(t, "the job manager has the connection", func() bool { m.mu.Lock(); defer m.mu.Unlock(); return len(m.conns) == 1 })
	cancel()
	require.NoError(t, m.Wait())
	require.Error(t, m.Ready())
	_, err = stream.Recv()
	require.Equal(t, codes.Unavailable, wire.Code(err))
	_, err = m.Submit(bounded(t), &wire.SubmitRequest{Spec: specOf(t, 1)})
	require.Equal(t, codes.Unavailable, wire.Code(err))
}
