package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

func Example() {
	c := New(Config{Cluster: "example"})
	events := []Event{
		Registered{Conn: 1, Register: wire.Register{Version: wire.Version, ID: "a", Incarnation: "1", Slots: 2, Executable: anyHash}},
		Submitted{ID: "job", Spec: wire.JobSpec{Restart: wire.Restart{Strategy: wire.RestartNone}}, Slots: 2},
		Reported{Conn: 1, WorkerEvent: wire.WorkerEvent{
			WorkerRef: wire.WorkerRef{Job: "job", Attempt: 1},
			Ended:     &wire.Ended{Failure: &wire.Failure{Message: "exit status 3", ExitCode: 3}},
		}},
	}
	step := func(now time.Duration, event Event) {
		effects := c.Step(now, event)
		for len(effects) > 0 {
			effect := effects[0]
			effects = effects[1:]
			switch e := effect.(type) {
			case Persist:
				if e.Barrier { // the record is on disk
					effects = append(effects, c.Step(now, Persisted{ID: e.Job.ID, Attempt: e.Job.Attempt, State: e.Job.State})...)
				}
			case Send:
				if d := e.Message.Deploy; d != nil {
					fmt.Println("deploy", d.WorkerRef, "on", d.TaskManager)
				}
			case Changed:
				fmt.Println(e.Job.ID, "is", e.Job.State)
				if e.Job.State.Ended() {
					fmt.Println(e.Job.Detail)
				}
			}
		}
	}
	for i, event := range events {
		step(time.Duration(i)*time.Second, event)
	}
	// Output:
	// job is waiting
	// job is deploying
	// deploy job/1/0 on a
	// job is failed
	// exit status 3 (worker 0 on task manager a)
}

// anyHash is the hash of the task managers' executable in tests for which the executable does
// not matter.
var anyHash = strings.Repeat("a", 64)

// TestFailuresAreBounded requires that each part of a worker's failure is stored only up to a
// limit.
func TestFailuresAreBounded(t *testing.T) {
	lines := make([]string, 1000)
	for i := range lines {
		lines[i] = fmt.Sprint(i, strings.Repeat("é", maxLine))
	}
	f := &wire.Failure{Message: strings.Repeat("x", 1<<20), Signal: strings.Repeat("s", 1<<20), LastLines: lines, Kind: wire.UserFailure}
	b := bounded(f)
	require.Len(t, f.LastLines, 1000)
	require.Len(t, b.LastLines, maxLines)
	require.True(t, strings.HasPrefix(b.LastLines[maxLines-1], "999é"))
	require.True(t, strings.HasSuffix(b.Message, fmt.Sprintf("… (%d bytes more)", 1<<20-maxMessage)))
	total := len(b.Message) + len(b.Signal)
	for _, line := range b.LastLines {
		require.True(t, strings.ToValidUTF8(line, "") == line)
		total += len(line)
	}
	require.Less(t, total, maxMessage+maxText+(maxLines+2)*(maxLine+40))
}

// TestEndedJobsAreSmall requires that an ended job does not keep data that only its workers
// needed.
func TestEndedJobsAreSmall(t *testing.T) {
	c := New(Config{})
	c.Step(0, Submitted{ID: "j", Spec: wire.JobSpec{Graph: make([]byte, 1<<20)}, Slots: 1})
	c.Step(0, CancelAsked{ID: "j"})
	j := c.jobs["j"]
	require.Nil(t, j.spec.Graph)
	require.Empty(t, c.live)
	require.Equal(t, wire.JobCancelled, j.info.State)
}

// TestDefaults compares the defaults with the values that Config documents.
func TestDefaults(t *testing.T) {
	c := New(Config{}).config
	require.Equal(t, 250*time.Millisecond, c.Heartbeat)
	require.Equal(t, 1500*time.Millisecond, c.Detection)
	require.Equal(t, 1500*time.Millisecond, c.Reconnect)
	require.Equal(t, 500*time.Millisecond, c.Ended)
	require.Equal(t, 16*time.Second, c.Lease)
	require.Equal(t, 1000, c.Keep)
	require.Less(t, New(Config{}).causeDue(&job{}), 2500*time.Millisecond, "the core must wait for the cause of a failure for less than 2.5 s")
}

// TestSnapshotsStay requires that a snapshot of a job does not change when the job changes.
func TestSnapshotsStay(t *testing.T) {
	c := New(Config{})
	c.Step(0, Registered{Conn: 1, Register: wire.Register{Version: wire.Version, ID: "a", Incarnation: "1", Slots: 1, Executable: anyHash}})
	c.Step(0, Submitted{ID: "j", Slots: 1})
	before, ok := c.Job("j")
	require.True(t, ok)
	c.Step(0, Reported{Conn: 1, WorkerEvent: wire.WorkerEvent{WorkerRef: wire.WorkerRef{Job: "j", Attempt: 1}, Ready: &wire.Ready{Address: "h:1"}}})
	after, _ := c.Job("j")
	require.Empty(t, before.Workers[0].Address)
	require.Equal(t, "h:1", after.Workers[0].Address)
	_, ok = c.Job("k")
	require.False(t, ok)
	require.Nil(t, c.Progress("k"))
}

// TestProgressAddsUp requires that the progress of workers is added up even if their reports
// have different numbers of vertices, which first reports may have.
func TestProgressAddsUp(t *testing.T) {
	report := func(rows ...int64) *wire.Progress {
		p := &wire.Progress{}
		for _, r := range rows {
			p.Vertices = append(p.Vertices, wire.VertexProgress{Rows: r, ShardsDone: 1})
		}
		return p
	}
	a, b := report(1, 2), report(10, 20, 30)
	a.Edges = []wire.EdgeProgress{{Rows: 1, Bytes: 10}}
	b.Edges = []wire.EdgeProgress{{Rows: 2, Bytes: 20}, {Rows: 3, Bytes: 30}}
	a.Queues = []wire.QueueProgress{{Superstep: 4}}
	b.Queues = []wire.QueueProgress{{Superstep: 9}}
	a.Uncopied = []wire.Uncopied{{Queue: "q", Why: "first"}}
	b.Uncopied = []wire.Uncopied{{Queue: "q", Why: "second"}, {Queue: "r", Why: "third"}}
	j := &job{workers: []*worker{
		{progress: a},
		{progress: b, ref: wire.WorkerRef{Worker: 1}},
		{ref: wire.WorkerRef{Worker: 2}},
	}}
	got := j.progress()
	require.Equal(t, []wire.VertexProgress{{Rows: 11, ShardsDone: 2}, {Rows: 22, ShardsDone: 2}, {Rows: 30, ShardsDone: 1}}, got.Vertices)
	require.Equal(t, []wire.EdgeProgress{{Rows: 3, Bytes: 30}, {Rows: 3, Bytes: 30}}, got.Edges)
	require.Equal(t, a.Queues, got.Queues)
	require.Equal(t, []wire.Uncopied{{Queue: "q", Why: "first"}, {Queue: "r", Why: "third"}}, got.Uncopied)
	require.Equal(t, report(1, 2).Vertices, a.Vertices)
}
