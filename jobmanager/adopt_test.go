package jobmanager

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// goesOn registers a task manager that had the worker of deployment d, with what the worker has
// reported.
func goesOn(t *testing.T, c *wire.Client, d *wire.Deployment, said ...wire.WorkerEvent) *manager {
	r := registration("a", 2)
	r.Running = []wire.WorkerRef{d.WorkerRef}
	tm := join(t, c, r)
	for _, e := range said {
		e.WorkerRef = d.WorkerRef
		tm.says(e)
	}
	return tm
}

var saidReady = wire.WorkerEvent{Ready: &wire.Ready{Address: "127.0.0.1:1", Fingerprint: "f"}}

// TestRunningJobGoesOn stops the job manager while a job runs whose worker has delivered rows and
// text, and another job waits. After a restart, the running job must go on with the same worker
// and all rows. The other must then run as it was submitted.
func TestRunningJobGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(c *Config) { c.Dir = dir }
	m := start(t, in)
	c := dial(t, m, testToken, nil)
	program := executable("adopted")
	hash := hashOf(program)
	require.NoError(t, upload(t, c, hash, int64(len(program)), program))
	tm := join(t, c, registration("a", 2))
	spec := specOf(t, 2)
	spec.Args, spec.Artifact, spec.Platform = []byte("args"), hash, linux
	id := submit(t, c, spec)
	d := tm.run()
	second := submit(t, c, spec)
	s := tm.deliver(d.WorkerRef)
	require.NoError(t, s.Send(rowsOf(t, 5, 50, 51)))
	require.NoError(t, s.Send(&wire.Delivery{Output: &wire.Output{Text: []byte("text\n")}}))
	_, err := s.CloseAndRecv()
	require.NoError(t, err)
	require.NoError(t, m.Close())

	m = start(t, in)
	require.Equal(t, 2, m.artifacts.Kept[hash].Pins)
	c = dial(t, m, testToken, nil)
	info, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
	require.NoError(t, err)
	require.Equal(t, wire.JobRunning, info.State)
	require.Contains(t, info.Detail, "the job manager restarted and waits up to")
	require.NotEmpty(t, info.Plan)
	tm = goesOn(t, c, d, saidReady, wire.WorkerEvent{Prepared: &wire.Prepared{}})
	require.NotNil(t, tm.next().Worker.Start, "the command may have been lost")
	s = tm.deliver(d.WorkerRef)
	require.NoError(t, s.Send(rowsOf(t, 6, 60)))
	_, err = s.CloseAndRecv()
	require.NoError(t, err)
	tm.succeed(d.WorkerRef, "outcome")
	_, last := follow(t, c, &wire.FollowRequest{Job: id})
	require.Equal(t, wire.JobFinished, last.State)
	require.Equal(t, 1, last.Attempt)
	require.Equal(t, "f", last.Fingerprint)
	values, _, err := resultOf(t, c, id, "rows")
	require.NoError(t, err)
	require.Equal(t, []float64{50, 51, 60}, values)

	next := tm.run()
	require.Equal(t, second, next.Job)
	require.Equal(t, spec, next.Spec)
	tm.succeed(next.WorkerRef, "outcome")
	_, last = follow(t, c, &wire.FollowRequest{Job: second})
	require.Equal(t, wire.JobFinished, last.State)
	eventually(t, "the executable is no longer pinned", func() bool {
		m.artifacts.Lock()
		defer m.artifacts.Unlock()
		return m.artifacts.Kept[hash].Pins == 0
	})
}

// TestRowsThatTheJobManagerLost removes the end of the file with the rows for the client, which a
// worker was told it need not keep. The attempt must be lost, and a client that had received the
// rows must get those of the next attempt under new numbers.
func TestRowsThatTheJobManagerLost(t *testing.T) {
	t.Parallel()
	for _, left := range []float64{0.9, 0.2, 0, -1} { // part of the file that is left; -1 means no file
		dir := t.TempDir()
		in := func(c *Config) { c.Dir = dir }
		m := start(t, in)
		c := dial(t, m, testToken, nil)
		tm := join(t, c, registration("a", 2))
		spec := specOf(t, 1)
		spec.Restart = wire.Restart{Strategy: wire.RestartFixedDelay, Attempts: 1, Delay: time.Millisecond}
		id := submit(t, c, spec)
		d := tm.run()
		s := tm.deliver(d.WorkerRef)
		for i := range 20 {
			require.NoError(t, s.Send(rowsOf(t, 5, float64(i))))
		}
		_, err := s.CloseAndRecv()
		require.NoError(t, err)
		stream, err := c.Follow(bounded(t), &wire.FollowRequest{Job: id})
		require.NoError(t, err)
		var seen uint64
		for rows := 0; rows < 20; {
			e, err := stream.Recv()
			require.NoError(t, err)
			if seen = e.Number; e.Collected != nil {
				rows++
			}
		}
		require.NoError(t, m.Close())
		path := dir + "/" + spoolName(id)
		if left < 0 {
			require.NoError(t, os.Remove(path))
		} else {
			stat, err := os.Stat(path)
			require.NoError(t, err)
			require.NoError(t, os.Truncate(path, int64(float64(stat.Size())*left)))
		}

		m = start(t, in)
		c = dial(t, m, testToken, nil)
		tm = goesOn(t, c, d, saidReady)
		require.NotNil(t, tm.next().Worker.Cancel)
		tm.ended(d.WorkerRef, nil)
		d = tm.run()
		require.Equal(t, 2, d.Attempt)
		s = tm.deliver(d.WorkerRef)
		require.NoError(t, s.Send(rowsOf(t, 5, 7)))
		_, err = s.CloseAndRecv()
		require.NoError(t, err)
		tm.succeed(d.WorkerRef, "")
		info, err := c.Show(bounded(t), &wire.ShowRequest{Job: id})
		require.NoError(t, err)
		require.Contains(t, info.Lost[0].Cause, "some of the rows and text that it had stored are lost")
		stream, err = c.Follow(bounded(t), &wire.FollowRequest{Job: id, From: seen + 1})
		require.NoError(t, err)
		rows := 0
		for ended := false; !ended; {
			e, err := stream.Recv()
			require.NoError(t, err)
			require.Greater(t, e.Number, seen)
			if e.Collected != nil {
				rows++
			}
			ended = e.State != nil && e.State.State.Ended()
		}
		require.Equal(t, 1, rows)
		values, _, err := resultOf(t, c, id, "rows")
		require.NoError(t, err)
		require.Equal(t, []float64{7}, values)
	}
}

// TestAttachedClientOfARestartedJobManager requires that an attached job goes on if its client
// comes back after a restart, and is cancelled otherwise.
func TestAttachedClientOfARestartedJobManager(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(c *Config) { c.Dir, c.AttachGrace = dir, 300*time.Millisecond }
	m := start(t, in, func(c *Config) { c.AttachGrace = time.Hour })
	c := dial(t, m, testToken, nil)
	spec := specOf(t, 1)
	spec.Attached = true
	there, gone := submit(t, c, spec), submit(t, c, spec)
	require.NoError(t, m.Close())
	m = start(t, in)
	c = dial(t, m, testToken, nil)
	stream, err := c.Follow(bounded(t), &wire.FollowRequest{Job: there, Attach: true})
	require.NoError(t, err)
	_, err = stream.Recv()
	require.NoError(t, err)
	_, last := follow(t, c, &wire.FollowRequest{Job: gone})
	require.Equal(t, wire.JobCancelled, last.State)
	require.Contains(t, last.Detail, "its client went away")
	info, err := c.Show(bounded(t), &wire.ShowRequest{Job: there})
	require.NoError(t, err)
	require.Equal(t, wire.JobWaiting, info.State)
}

// TestCancelIsOnRecord requires that a job whose cancellation was confirmed is not taken up again.
func TestCancelIsOnRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := start(t, func(c *Config) { c.Dir = dir })
	c := dial(t, m, testToken, nil)
	waits := submit(t, c, specOf(t, 5))
	tm := join(t, c, registration("a", 2))
	runs := submit(t, c, specOf(t, 1))
	tm.run()
	for _, id := range []wire.JobID{waits, runs} {
		_, err := c.Cancel(bounded(t), &wire.CancelRequest{Job: id, Reason: "enough"})
		require.NoError(t, err)
	}
	copied := t.TempDir() // the job manager is killed now
	require.NoError(t, os.CopyFS(copied, os.DirFS(dir)))
	m = start(t, func(c *Config) { c.Dir = copied })
	for _, id := range []wire.JobID{waits, runs} {
		info, err := m.Show(bounded(t), &wire.ShowRequest{Job: id})
		require.NoError(t, err)
		require.Equal(t, wire.JobCancelled, info.State)
	}
}

// TestDamagedSpecification damages the specification of one waiting job in the history. The job
// must fail with a message, and another must be taken up again.
func TestDamagedSpecification(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(c *Config) { c.Dir = dir }
	m := start(t, in)
	c := dial(t, m, testToken, nil)
	spec := specOf(t, 5)
	whole := submit(t, c, spec)
	spec.Args = []byte("the arguments of the other job")
	damaged := submit(t, c, spec)
	require.NoError(t, m.Close())
	data, err := os.ReadFile(dir + "/" + historyName)
	require.NoError(t, err)
	require.Contains(t, string(data), string(spec.Args))
	require.NoError(t, os.WriteFile(dir+"/"+historyName, bytes.ReplaceAll(data, spec.Args, bytes.ToUpper(spec.Args)), 0o600))
	m = start(t, in)
	info, err := m.Show(bounded(t), &wire.ShowRequest{Job: whole})
	require.NoError(t, err)
	require.Equal(t, wire.JobWaiting, info.State)
	info, err = m.Show(bounded(t), &wire.ShowRequest{Job: damaged})
	require.NoError(t, err)
	require.Equal(t, wire.JobFailed, info.State)
	require.Contains(t, info.Detail, "the job manager restarted while it waited, and could not take it up again; its log says why")
}

// TestOutdatedRecord puts an older copy of the history, which is damaged elsewhere, in the place of
// the history of a job that has begun to commit. The job must not begin again.
func TestOutdatedRecord(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(c *Config) { c.Dir = dir }
	m := start(t, in)
	c := dial(t, m, testToken, nil)
	spec := specOf(t, 5)
	spec.Args = []byte("the arguments of a job that waits")
	submit(t, c, spec)
	tm := join(t, c, registration("a", 2))
	commits := submit(t, c, specOf(t, 1))
	d := tm.run()
	runs := submit(t, c, specOf(t, 1))
	tm.run()
	m.mu.Lock() // the record of the start is passed on after the command was sent, while mu is held
	started, _ := m.core.Job(runs)
	m.mu.Unlock()
	require.Equal(t, wire.JobRunning, started.State)
	require.NoError(t, m.awaitFollowers(bounded(t)))
	old, err := os.ReadFile(dir + "/" + historyName)
	require.NoError(t, err)
	tm.says(wire.WorkerEvent{WorkerRef: d.WorkerRef, Finished: &wire.Finished{}})
	require.NotNil(t, tm.next().Worker.Commit)
	require.NoError(t, m.Close())
	require.NoError(t, os.WriteFile(dir+"/"+historyName, bytes.ReplaceAll(old, spec.Args, bytes.ToUpper(spec.Args)), 0o600))
	m = start(t, in)
	info, err := m.Show(bounded(t), &wire.ShowRequest{Job: commits})
	require.NoError(t, err)
	require.Equal(t, wire.JobFailed, info.State)
	require.Contains(t, info.Detail, "its last recorded state is running; the history of jobs was damaged")
	require.Contains(t, info.Detail, "the job's events are later than its record, so that the job may have come further")
	info, err = m.Show(bounded(t), &wire.ShowRequest{Job: runs})
	require.NoError(t, err)
	require.Equal(t, wire.JobRunning, info.State)
}

// machine is a task manager that survives job managers. Its workers obey all commands, and each
// delivers three rows.
type machine struct {
	mu      sync.Mutex
	running map[wire.WorkerRef]bool
	said    map[wire.WorkerRef][]wire.WorkerEvent
	started map[wire.WorkerRef]bool
	graph   []byte // the graph that its workers resolve
}

func newMachine(t *testing.T) *machine {
	return &machine{running: map[wire.WorkerRef]bool{}, said: map[wire.WorkerRef][]wire.WorkerEvent{}, started: map[wire.WorkerRef]bool{}, graph: graphOf(t, "demo", 8)}
}

// clone returns a copy of a machine.
func (a *machine) clone() *machine {
	a.mu.Lock()
	defer a.mu.Unlock()
	return &machine{running: maps.Clone(a.running), said: maps.Clone(a.said), started: maps.Clone(a.started), graph: a.graph}
}

// join registers the machine and serves it until its connection ends.
func (a *machine) join(t *testing.T, c *wire.Client, incarnation string) *manager {
	r := registration("a", 2)
	r.Incarnation = incarnation
	r.Running = slices.Collect(maps.Keys(a.running))
	tm := join(t, c, r)
	for _, ref := range r.Running {
		said := slices.Clone(a.said[ref])
		for _, e := range said {
			tm.says(e)
		}
		if last := len(said) - 1; a.started[ref] && said[last].Finished == nil && said[last].Committed == nil {
			// Its rows were on their way, and nobody knows whether they have arrived.
			a.end(tm, ref, &wire.Failure{Kind: wire.LostFailure, Message: "its rows may be lost"})
		}
	}
	tm.work.Go(func() { a.serve(t, tm) })
	return tm
}

// say reports an event of a worker.
func (a *machine) say(tm *manager, e wire.WorkerEvent) {
	a.mu.Lock()
	a.said[e.WorkerRef] = append(slices.Clone(a.said[e.WorkerRef]), e)
	a.mu.Unlock()
	_ = tm.send(&wire.FromTaskManager{Worker: &e})
}

// end ends a worker.
func (a *machine) end(tm *manager, ref wire.WorkerRef, f *wire.Failure) {
	a.mu.Lock()
	delete(a.running, ref)
	a.mu.Unlock()
	tm.mu.Lock()
	tm.running = slices.DeleteFunc(tm.running, func(r wire.WorkerRef) bool { return r == ref })
	tm.mu.Unlock()
	_ = tm.send(&wire.FromTaskManager{Worker: &wire.WorkerEvent{WorkerRef: ref, Ended: &wire.Ended{Failure: f}}})
}

func (a *machine) serve(t *testing.T, tm *manager) {
	for m := range tm.told {
		if d := m.Deploy; d != nil {
			a.deploy(t, tm, d)
			continue
		}
		c := m.Worker
		e := wire.WorkerEvent{WorkerRef: c.WorkerRef}
		switch {
		case c.Prepare != nil:
			e.Prepared = &wire.Prepared{}
		case c.Start != nil:
			a.mu.Lock()
			again := a.started[c.WorkerRef]
			a.started[c.WorkerRef] = true
			a.mu.Unlock()
			if s, err := tm.client.Deliver(tm.stream.Context()); !again && err == nil {
				_ = s.Send(&wire.Delivery{Worker: &c.WorkerRef})
				_ = s.Send(rowsOf(t, 1, 1, 2))
				_ = s.Send(rowsOf(t, 2, 3))
				if _, err := s.CloseAndRecv(); err == nil {
					e.Finished = &wire.Finished{Outcome: []byte("outcome")}
					a.say(tm, e)
				}
			}
			continue
		case c.Commit != nil:
			e.Committed = &wire.Committed{}
		default:
			a.end(tm, c.WorkerRef, nil)
			continue
		}
		a.say(tm, e)
	}
}

// deploy starts a worker. No other worker of the job may be left.
func (a *machine) deploy(t *testing.T, tm *manager, d *wire.Deployment) {
	a.mu.Lock()
	for ref := range a.running {
		if ref.Job == d.Job && !t.Failed() {
			t.Errorf("%s is deployed while %s runs", d.WorkerRef, ref)
		}
	}
	a.running[d.WorkerRef] = true
	a.mu.Unlock()
	tm.mu.Lock()
	tm.running = append(tm.running, d.WorkerRef)
	tm.mu.Unlock()
	e := wire.WorkerEvent{WorkerRef: d.WorkerRef}
	if d.Mode == wire.ResolveMode {
		e.Resolved = &wire.Resolved{Graph: a.graph}
	} else {
		e.Ready = saidReady.Ready
	}
	a.say(tm, e)
}

// TestCrashesBetweenWrites runs a job whose graph a worker resolves, and copies the work directory
// before each write of the history and at the end. From each copy, and with the task manager as it
// was then or started again, another job manager must bring the job to its end: it must finish,
// with its rows once, and two attempts must never run at once.
func TestCrashesBetweenWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	short := func(c *Config) { c.Lease = 200 * time.Millisecond }
	m := start(t, short, func(c *Config) { c.Dir = dir })
	type copied struct {
		dir     string
		machine *machine
		records int
	}
	var copies []copied
	a := newMachine(t)
	take := func() {
		c := copied{dir: t.TempDir()}
		require.NoError(t, os.CopyFS(c.dir, os.DirFS(dir)))
		all, err := m.history.all()
		require.NoError(t, err)
		c.machine, c.records = a.clone(), len(all)
		copies = append(copies, c)
	}
	write := m.recorder.write
	m.recorder.put(entry{then: func(error) {
		m.recorder.write = func(changes []change) error {
			take()
			return write(changes)
		}
	}})
	require.NoError(t, m.awaitFollowers(bounded(t)))
	c := dial(t, m, testToken, nil)
	tm := a.join(t, c, "first")
	spec := specOf(t, 1)
	spec.Graph = nil
	spec.Restart = wire.Restart{Strategy: wire.RestartFixedDelay, Attempts: 2, Delay: time.Millisecond}
	id := submit(t, c, spec)
	_, last := follow(t, c, &wire.FollowRequest{Job: id})
	require.Equal(t, wire.JobFinished, last.State, last.Detail)
	require.NoError(t, m.awaitFollowers(bounded(t)))
	take()
	require.NoError(t, m.Close())
	tm.leave()
	require.Greater(t, len(copies), 6)
	for i, from := range copies {
		for _, incarnation := range []string{"first", "second"} {
			t.Run(fmt.Sprint(i, " ", incarnation), func(t *testing.T) {
				t.Parallel()
				if from.records == 0 {
					return // the client had no reply
				}
				dir := t.TempDir()
				require.NoError(t, os.CopyFS(dir, os.DirFS(from.dir)))
				m := start(t, short, func(c *Config) { c.Dir = dir })
				c := dial(t, m, testToken, nil)
				a := from.machine.clone()
				if incarnation != "first" {
					a = newMachine(t)
				}
				a.join(t, c, incarnation)
				_, last := follow(t, c, &wire.FollowRequest{Job: id})
				require.Equal(t, wire.JobFinished, last.State, last.Detail)
				values, _, err := resultOf(t, c, id, "rows")
				require.NoError(t, err)
				require.Equal(t, []float64{1, 2, 3}, values)
				spec, err := m.history.spec(id)
				require.NoError(t, err)
				require.Nil(t, spec, "the specification of a job that has ended is not needed")
				files, err := fs.Glob(os.DirFS(dir), "history.db*")
				require.NoError(t, err)
				require.Equal(t, []string{historyName}, files, "the history must not be damaged")
			})
		}
	}
}

// TestSubmittedOnce repeats a submission: at once, after a restart of the job manager, and after
// the end of the job. The answer must be the same job. Submissions with other keys, and those
// without a key, must be jobs of their own.
func TestSubmittedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(c *Config) { c.Dir = dir }
	m := start(t, in)
	c := dial(t, m, testToken, nil)
	program := executable("once")
	hash := hashOf(program)
	require.NoError(t, upload(t, c, hash, int64(len(program)), program))
	spec := specOf(t, 1)
	spec.Artifact, spec.Platform = hash, linux
	keyed := func(key string) wire.JobID {
		reply, err := c.Submit(bounded(t), &wire.SubmitRequest{Spec: spec, Key: key})
		require.NoError(t, err)
		return reply.Job
	}
	id := keyed("key")
	require.Equal(t, id, keyed("key"))
	other, first, second := keyed("other"), keyed(""), keyed("")
	require.Len(t, map[wire.JobID]bool{id: true, other: true, first: true, second: true}, 4)
	require.NoError(t, m.Close())

	m = start(t, in)
	require.Equal(t, 4, m.artifacts.Kept[hash].Pins)
	c = dial(t, m, testToken, nil)
	require.Equal(t, id, keyed("key"))
	require.Equal(t, 4, m.artifacts.Kept[hash].Pins)
	tm := join(t, c, registration("a", 1))
	d := tm.run()
	require.Equal(t, id, d.Job)
	tm.succeed(d.WorkerRef, "outcome")
	_, last := follow(t, c, &wire.FollowRequest{Job: id})
	require.Equal(t, wire.JobFinished, last.State)
	require.Equal(t, id, keyed("key"))
	require.NoError(t, m.Close())

	m = start(t, in)
	c = dial(t, m, testToken, nil)
	require.Equal(t, id, keyed("key"))
	list, err := c.List(bounded(t), &wire.ListRequest{})
	require.NoError(t, err)
	require.Len(t, list.Jobs, 4)
	_, err = c.Submit(bounded(t), &wire.SubmitRequest{Spec: spec, Key: string(make([]byte, maxKey+1))})
	require.ErrorContains(t, err, "the key of a submission has at most 100 bytes")
}
