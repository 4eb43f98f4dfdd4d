package engine

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
)

// training returns the progress of a run in the middle of a queue.
func training() Progress {
	return Progress{
		Job: "iris-kmeans", Elapsed: 3240 * time.Millisecond, Rows: 12_345_678, RowsPerSecond: 4_560_000,
		Vertices: []VertexProgress{
			{Name: "ReadCSV", Source: true, Rows: 12_345_678, ShardsDone: 128, Shards: 128},
			{Name: "Map", Rows: 1, Shards: 128},
		},
		Queues: []QueueProgress{{Name: "kmeans", Superstep: 12, Max: 50, Values: []Value{{Name: "inertia", Value: 78.8514414}, {Name: "moved", Value: 1.25e-7}}}},
	}
}

func TestLine(t *testing.T) {
	p := training()
	require.Equal(t, "iris-kmeans · 3.2s · 12.3M rows · kmeans 12/50 inertia=78.8514 moved=1.25e-07", renderLine(p, 100))
	require.Equal(t, "iris-kmeans · 3.2s · 12.3M rows · kmea…", renderLine(p, 39))
	require.Equal(t, "…", renderLine(p, 1))
	require.Empty(t, renderLine(p, 0))

	p.Vertices[0].ShardsDone = 5
	p.Queues = append(p.Queues, QueueProgress{Name: "next"})
	require.Equal(t, "iris-kmeans · 3.2s · 12.3M rows, 4.5M/s · kmeans 12/50 inertia=78.8514 moved=1.25e-07", renderLine(p, 100))

	p.Queues[0].Ended = true
	p.Queues[1] = QueueProgress{Name: "next", Superstep: 1}
	require.Equal(t, "iris-kmeans · 3.2s · 12.3M rows, 4.5M/s · next 1", renderLine(p, 100))

	require.Equal(t, "0.0s", renderLine(Progress{}, 100), "the line must have only the time before anything is known")
	p = Progress{Job: "bad\x1b[2J\nname"}
	require.Equal(t, "bad?[2J?name · 0.0s", renderLine(p, 100))
}

func TestQueueShown(t *testing.T) {
	began, ended, waiting := QueueProgress{Name: "a", Superstep: 3}, QueueProgress{Name: "b", Superstep: 2, Ended: true}, QueueProgress{Name: "c"}
	for _, test := range []struct {
		queues []QueueProgress
		want   string
	}{
		{nil, ""}, {[]QueueProgress{waiting}, ""}, {[]QueueProgress{ended, waiting}, "b"},
		{[]QueueProgress{began, ended}, "a"}, {[]QueueProgress{ended, began}, "a"},
		{[]QueueProgress{began, {Name: "d", Superstep: 1}}, "d"}, {[]QueueProgress{ended, {Name: "e", Superstep: 9, Ended: true}}, "e"},
	} {
		got := ""
		if q := current(test.queues); q != nil {
			got = q.Name
		}
		require.Equal(t, test.want, got, "%v", test.queues)
	}
}

func TestQueueEndAndOutcome(t *testing.T) {
	q := training().Queues[0]
	require.Equal(t, "kmeans: 12 supersteps, inertia=78.8514, moved=1.25e-07 (after 3.2s)", renderQueueEnd(q, 3240*time.Millisecond))
	require.Equal(t, "one: 1 superstep", renderQueueEnd(QueueProgress{Name: "one", Superstep: 1}, 0))
	require.Equal(t, "done: 12.3M rows in 3.2s", renderDone(training()))
}

func TestPlanLines(t *testing.T) {
	stage := func(kind plan.StageKind, op, name string) plan.Node {
		return plan.Node{Op: op, Name: name, Queue: "kmeans", Stage: kind}
	}
	p := &plan.Plan{Job: "iris", Shards: 128, Seed: 3, Parallelism: 2,
		Nodes: []plan.Node{
			{Op: "ReadCSV"}, stage(plan.QueueInit, "QueueInit", ""),
			stage(plan.Compute, "Compute", "assign"),
			stage(plan.RepeatBegin, "RepeatBegin", ""),
			stage(plan.Send, "AllReduceSend", "sums"), stage(plan.Sum, "AllReduceSum", "sums"), stage(plan.Recv, "AllReduceRecv", "sums"),
			stage(plan.RepeatEnd, "RepeatEnd", ""),
			stage(plan.Communicate, "AllGather", "best"), stage(plan.Communicate, "Barrier", ""),
			stage(plan.Compute, "Compute", ""), stage(plan.Criterion, "Criterion", ""), stage(plan.QueueClose, "QueueClose", ""),
		},
		Vertices: []plan.Vertex{
			{Name: "ReadCSV → Map", Parallelism: 2},
			{Name: "assign → AllReduceSend(sums)", Queue: "kmeans", Parallelism: 2},
			{Name: "Count", Parallelism: 1},
			{Name: "AllReduceSum(sums)", Queue: "kmeans", Parallelism: 2},
		}}
	require.Equal(t, `iris: 13 operators in 4 vertices, parallelism 2, 128 shards, seed 3
  ReadCSV → Map ×2
  queue kmeans ×2: assign → repeat [AllReduce(sums)] → AllGather(best) → Barrier → Compute
  Count ×1
`, renderPlan(p, 100))
	require.Equal(t, "iris: 13 …\n  ReadCSV…\n  queue k…\n  Count ×1\n", renderPlan(p, 10))
	p.Job, p.Nodes, p.Vertices = "", p.Nodes[:1], nil
	for range maxPlanLines + 2 {
		p.Vertices = append(p.Vertices, plan.Vertex{Name: "X", Parallelism: 1})
	}
	got := strings.Split(renderPlan(p, 100), "\n")
	require.Equal(t, "job: 1 operator in 14 vertices, parallelism 2, 128 shards, seed 3", got[0])
	require.Len(t, got, 1+maxPlanLines+1+1)
	require.Equal(t, "  … and 2 more (--explain shows all)", got[1+maxPlanLines])
}

// TestPrintsMakeRoom requires that the text of Print does not appear within the live progress
// line, although it goes to another stream of the same terminal.
func TestPrintsMakeRoom(t *testing.T) {
	var terminal strings.Builder
	d := newDisplay(progressLive, &terminal, func() int { return 80 })
	out := sharedScreen{d, &terminal}
	fmt.Fprint(out, "before\n")
	d.update(Progress{Job: "j", Elapsed: time.Second})
	fmt.Fprint(out, "table\n")
	line := renderLine(Progress{Job: "j", Elapsed: time.Second}, 80)
	require.Equal(t, "before\n"+eraseLine+line+eraseLine+"table\n"+line, terminal.String())
}

func TestFormats(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0.0s", 999 * time.Millisecond: "0.9s", 59_990 * time.Millisecond: "59.9s", 65 * time.Second: "1m05s",
		3599 * time.Second: "59m59s", 7380 * time.Second: "2h03m",
	} {
		require.Equal(t, want, formatElapsed(d))
	}
	for n, want := range map[float64]string{0: "0", 999.9: "999", 1000: "1.0k", 12_345: "12.3k", 999_999: "999.9k", 4.56e6: "4.5M", 1e9: "1.0G", 5e15: "5000.0T"} {
		require.Equal(t, want, formatCount(n))
	}
	for d, want := range map[time.Duration]string{
		0: "0s", 999: "999ns", 1234: "1.23µs", 45_678 * time.Microsecond: "45.7ms", 1234 * time.Millisecond: "1.23s", 12_345 * time.Millisecond: "12.3s", 2 * time.Hour: "2h0m0s",
	} {
		require.Equal(t, want, formatDuration(d), "%d", d)
	}
}

// screenAt returns a display with the given mode, and the buffer that it writes to.
func screenAt(mode progressMode, width int) (*display, *bytes.Buffer) {
	var out bytes.Buffer
	return newDisplay(mode, &out, func() int { return width }), &out
}

func TestLiveLine(t *testing.T) {
	d, out := screenAt(progressLive, 30)
	fmt.Fprintln(d, "before")
	p := training()
	d.update(p)
	fmt.Fprintln(d, "a log line")
	p.Done, p.Queues[0].Ended = true, true
	d.update(p)
	require.Equal(t, "before\n"+
		eraseLine+"iris-kmeans · 3.2s · 12.3M ro…"+
		eraseLine+"a log line\n"+"iris-kmeans · 3.2s · 12.3M ro…"+
		eraseLine+"kmeans: 12 supersteps, inerti…\n"+
		"done: 12.3M rows in 3.2s\n", out.String())
}

func TestLiveLineOfAFailedRun(t *testing.T) {
	d, out := screenAt(progressLive, 30)
	p := training()
	d.update(p)
	out.Reset()
	p.Done, p.Err = true, errors.New("broken")
	d.update(p)
	require.Equal(t, eraseLine, out.String(), "the live line must only be erased, because Main reports the error")
	out.Reset()
	d, out = screenAt(progressLive, 30)
	d.update(p)
	require.Empty(t, out.String(), "nothing must be erased if there was no line")
}

func TestPlainLines(t *testing.T) {
	d, out := screenAt(progressPlain, math.MaxInt)
	p := training()
	for ms := 100; ms <= 4500; ms += 100 {
		p.Elapsed = time.Duration(ms) * time.Millisecond
		p.Queues[0].Superstep = ms / 100
		p.Queues[0].Ended = ms >= 4200
		d.update(p)
	}
	p.Done = true
	d.update(p)
	require.Equal(t, `iris-kmeans · 2.0s · 12.3M rows · kmeans 20/50 inertia=78.8514 moved=1.25e-07
iris-kmeans · 4.0s · 12.3M rows · kmeans 40/50 inertia=78.8514 moved=1.25e-07
kmeans: 42 supersteps, inertia=78.8514, moved=1.25e-07 (after 4.2s)
done: 12.3M rows in 4.5s
`, out.String())
}

func TestJSONLines(t *testing.T) {
	d, out := screenAt(progressJSON, 0)
	p := training()
	p.Queues[0].Values = []Value{{Name: "b", Value: math.Inf(1)}, {Name: "a", Value: 0.5}}
	for ms := 500; ms <= 2500; ms += 500 {
		p.Elapsed = time.Duration(ms) * time.Millisecond
		d.update(p)
	}
	p.Queues[0].Ended = true
	d.update(p)
	d.update(p)
	p.Done, p.Err = true, errors.New("broken")
	d.update(p)
	require.Equal(t, `{"event":"progress","job":"iris-kmeans","seconds":2,"rows":12345678,"rows_per_second":4560000,"queues":[{"name":"kmeans","superstep":12,"max_supersteps":50,"ended":false,"values":{"a":0.5,"b":"+Inf"}}]}
{"event":"progress","job":"iris-kmeans","seconds":2.5,"rows":12345678,"rows_per_second":4560000,"queues":[{"name":"kmeans","superstep":12,"max_supersteps":50,"ended":true,"values":{"a":0.5,"b":"+Inf"}}]}
{"event":"failed","job":"iris-kmeans","seconds":2.5,"rows":12345678,"rows_per_second":4560000,"queues":[{"name":"kmeans","superstep":12,"max_supersteps":50,"ended":true,"values":{"a":0.5,"b":"+Inf"}}],"error":"broken"}
`, out.String())
}

func TestNoProgress(t *testing.T) {
	d, out := screenAt(progressOff, 80)
	d.begin(&plan.Plan{})
	d.update(training())
	require.Empty(t, out.String())
}

// watched is a plan with one source and one queue.
var watched = &plan.Plan{
	Job: "j", Shards: 4,
	Vertices: []plan.Vertex{{ID: 0, Name: "Read"}, {ID: 1, Name: "init", Queue: "q"}},
	Edges:    []plan.Edge{{From: 0, To: 1}},
	Queues:   []plan.Queue{{Name: "q", MaxSupersteps: 3}},
}

// listener collects the progress that is reported to it.
type listener struct {
	mu       sync.Mutex
	reported []Progress
}

func (l *listener) tell(p Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reported = append(l.reported, p)
}

// heard waits until all goroutines are blocked, and returns what was reported since the last
// call.
func (l *listener) heard() []Progress {
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	reported := l.reported
	l.reported = nil
	return reported
}

func TestWatchTellsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l listener
		w := startWatch(watched, &config{onProgress: l.tell}, nil)
		w.event(task.Progress{Vertex: 0, Rows: 50, ShardsDone: 1})
		w.event(task.Progress{Vertex: 0, Rows: 40}) // a late report: counts never decrease
		w.event(task.Progress{Vertex: 1, Rows: 30})
		w.event(task.Progress{Vertex: 99, Rows: 1})
		w.event(task.Progress{Queue: "other", Step: 1})
		time.Sleep(ProgressInterval)
		require.Equal(t, []Progress{{
			Job: "j", Elapsed: ProgressInterval, Rows: 50, RowsPerSecond: 500,
			Vertices: []VertexProgress{{Name: "Read", Source: true, Rows: 50, ShardsDone: 1, Shards: 4}, {Name: "init", Rows: 30, Shards: 4}},
			Queues:   []QueueProgress{{Name: "q", Max: 3}},
		}}, l.heard())

		// Supersteps are reported at intervals.
		values := []Value{{Name: "loss", Value: 2}}
		w.event(task.Progress{Queue: "q", Step: 2, Values: values})
		values[0].Value = 99 // the values are valid only during the call
		w.event(task.Progress{Queue: "q", Step: 1})
		require.Empty(t, l.heard())
		time.Sleep(ProgressInterval)
		reported := l.heard()
		require.Len(t, reported, 1)
		require.Equal(t, []QueueProgress{{Name: "q", Superstep: 2, Max: 3, Values: []Value{{Name: "loss", Value: 2}}, PerSecond: 10, Left: ProgressInterval}}, reported[0].Queues)

		// The end of a queue is reported at once, and only once.
		w.event(task.Progress{Queue: "q", Step: 3, Values: []Value{{Name: "loss", Value: 1}}})
		reported = l.heard()
		require.Len(t, reported, 1)
		require.Equal(t, []QueueProgress{{Name: "q", Superstep: 3, Max: 3, Ended: true, Values: []Value{{Name: "loss", Value: 1}}}}, reported[0].Queues)
		w.event(task.Progress{Vertex: 1, ShardsDone: 4})
		require.Empty(t, l.heard())

		// Nothing is reported after the outcome of the run.
		failed := errors.New("failed")
		w.stop(nil, failed)
		reported = l.heard()
		require.Len(t, reported, 1)
		require.True(t, reported[0].Done)
		require.Equal(t, failed, reported[0].Err)
		time.Sleep(time.Minute)
		require.Empty(t, l.heard())
	})
}

func TestWatchSeesACriterionEndAQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l listener
		w := startWatch(watched, &config{onProgress: l.tell}, nil)
		w.event(task.Progress{Queue: "q", Step: 2})
		w.event(task.Progress{Vertex: 1, ShardsDone: 3})
		require.Empty(t, l.heard())
		w.event(task.Progress{Vertex: 1, ShardsDone: 4})
		reported := l.heard()
		require.Len(t, reported, 1)
		require.Equal(t, []QueueProgress{{Name: "q", Superstep: 2, Max: 3, Ended: true}}, reported[0].Queues)
		w.stop(nil, nil)
	})
}

func TestWatchLearnsFromTheReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var last Progress
		w := startWatch(watched, &config{onProgress: func(p Progress) { last = p }}, nil)
		w.event(task.Progress{Queue: "q", Step: 1})
		w.stop(&task.Report{Queues: []task.QueueReport{{Name: "q", Supersteps: 2, Stopped: true}, {Name: "other"}}}, nil)
		require.Equal(t, []QueueProgress{{Name: "q", Superstep: 2, Max: 3, Ended: true}}, last.Queues)
	})
}

func TestNobodyWatches(t *testing.T) {
	w := startWatch(watched, &config{}, nil)
	require.Nil(t, w)
	w.stop(nil, nil)
}

func TestRate(t *testing.T) {
	var r rate
	require.Zero(t, r.at(0, 0))
	for i := 1; i <= 30; i++ {
		got := r.at(time.Duration(i)*100*time.Millisecond, int64(i*10))
		require.InDelta(t, 100, got, 1e-9)
	}
	for i := 31; i <= 40; i++ {
		r.at(time.Duration(i)*100*time.Millisecond, 300)
	}
	require.Zero(t, r.at(4100*time.Millisecond, 300), "the rate must be 0 if no rows came in the last second")
}

func TestSummary(t *testing.T) {
	r := &Result{Report: &task.Report{
		Elapsed: 1234 * time.Millisecond, PeakMemory: 3 << 20, Spilled: 0,
		Vertices: []task.VertexReport{
			{Name: "ReadCSV → Map", Subtasks: []task.SubtaskReport{
				{RowsOut: 70, Shards: 4, Busy: 12 * time.Millisecond, Operators: []task.OperatorReport{{Counters: []task.Counter{{Name: "skipped", Value: 2}}}}},
				{RowsOut: 80, Shards: 4, Busy: 15 * time.Millisecond, Waiting: time.Millisecond, Operators: []task.OperatorReport{{Counters: []task.Counter{{Name: "skipped", Value: 3}}}}},
			}},
			{Name: "Count", Subtasks: []task.SubtaskReport{{RowsIn: 150, RowsOut: 1, Shards: 8, Busy: 20 * time.Microsecond}}},
		},
		Queues: []task.QueueReport{{
			Name: "kmeans", Supersteps: 2, Stopped: true, Elapsed: 34 * time.Millisecond,
			Series: []task.Series{{Name: "inertia", Values: []float64{90.5, 78.85}}, {Name: "none"}},
			Stages: []task.StageReport{{Name: "assign", Calls: 4, Busy: 30 * time.Millisecond}, {Name: "AllReduceSum", Calls: 4, Bytes: 1536, Busy: time.Microsecond, Program: "direct"}},
		}, {Name: "once", Supersteps: 1}},
		Accumulators: []task.Accumulator{{Name: "seen", Value: 150}},
	}}
	require.Equal(t, `vertex         subtask  shards  rows in  rows out  busy  waiting
ReadCSV → Map  all      8       0        150       27ms  1ms
               0        4       0        70        12ms  0s
               1        4       0        80        15ms  1ms
  skipped: 5
Count          all      8       150      1         20µs  0s

queue kmeans: 2 supersteps, ended by its criterion, 34ms
stage         calls  bytes    busy  program
assign        4      0 B      30ms  -
AllReduceSum  4      1.5 KiB  1µs   direct
inertia = 78.85

queue once: 1 superstep, ended by its maximum, 0s
stage  calls  bytes  busy  program
accumulator seen = 150
1.23s elapsed, at most 3 MiB of rows held, 0 B spilled
`, trimLines(r.Summary()))
	require.Equal(t, 5.0, mustAccumulator(t, &Result{Report: &task.Report{Accumulators: []task.Accumulator{{Name: "x", Value: 5}}}}, "x"))
	require.Equal(t, []float64{90.5, 78.85}, r.Series("kmeans", "inertia"))
	require.Nil(t, r.Series("kmeans", "x"))
	require.Equal(t, 2, r.Queue("kmeans").Supersteps)
}

func mustAccumulator(t *testing.T, r *Result, name string) float64 {
	v, ok := r.Accumulator(name)
	require.True(t, ok)
	return v
}

// trimLines removes the padding after the last column.
func trimLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n")
}
