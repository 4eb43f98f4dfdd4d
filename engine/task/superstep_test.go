package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/plan"
)

// queueGraph is source → queue → tap, with the given stages between the queue's
// beginning and end.
func queueGraph(shards, most int, criterion bool, stages ...plan.StageKind) *testGraph {
	g := parseGraph(shards, `
		a = source rows=200
		b = source rows=10`)
	columns := g.Nodes[0].Schema
	add := func(n plan.Node) plan.NodeID {
		n.ID = plan.NodeID(len(g.Nodes))
		n.Site = fmt.Sprintf("test.txt:%d", n.ID+1)
		g.Nodes = append(g.Nodes, n)
		return n.ID
	}
	at := add(plan.Node{Op: "Queue", Queue: "q", Stage: plan.QueueInit, Inputs: []plan.Input{
		{From: 0}, {From: 1, Partitioner: plan.Broadcast, Role: plan.Side},
	}})
	first := at + 1
	if criterion {
		stages = append(stages, plan.Criterion)
	}
	for _, kind := range stages {
		in := plan.Input{From: at, Role: plan.Control}
		if kind == plan.Sum || kind == plan.Recv {
			in.Partitioner = plan.BySubtask
		}
		at = add(plan.Node{Op: kind.String(), Queue: "q", Stage: kind, Inputs: []plan.Input{in}})
	}
	if criterion {
		g.Nodes[first].Inputs = append(g.Nodes[first].Inputs, plan.Input{From: at, Role: plan.Feedback})
	}
	at = add(plan.Node{Op: "QueueClose", Queue: "q", Stage: plan.QueueClose, Schema: columns, Inputs: []plan.Input{{From: at, Role: plan.Control}}})
	add(plan.Node{Op: "tap", Sink: true, Inputs: []plan.Input{{From: at}}})
	g.Queues = []plan.Queue{{Name: "q", MaxSupersteps: most, HasCriterion: criterion}}
	return g
}

// testGang is a gang made of functions.
type testGang struct {
	mu     sync.Mutex
	events []string
	body   func(subtask int) *testBody
	check  func(step int) error
	close  error
}

func (g *testGang) log(event string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = append(g.events, event)
}

func (g *testGang) Body(subtask int) (Body, error) {
	b := g.body(subtask)
	b.gang = g
	return b, nil
}

func (g *testGang) Close() error {
	g.log("gang closed")
	return g.close
}

func (g *testGang) CheckShared(step int) error {
	if g.check == nil {
		return nil
	}
	return g.check(step)
}

// testBody keeps its rows by shard and emits them with their number of supersteps.
type testBody struct {
	gang    *testGang
	context *Context
	comm    *collective.Comm
	rows    map[int][]row
	side    int
	steps   int

	open   func(b *testBody) error
	stages func(b *testBody) []Stage
	stop   func(step int) (bool, error)
	finish func(c *Context, out Output) error
	shard  int32 // one more than Shard returns; atomic
}

func (b *testBody) Shard() int { return int(atomic.LoadInt32(&b.shard)) - 1 }

func (b *testBody) Open(c *Context, in Input, comm *collective.Comm) error {
	b.context, b.comm, b.rows = c, comm, make(map[int][]row)
	for shard := c.Range.Lo; shard < c.Range.Hi; shard++ {
		for {
			rec, err := in.Next(0, shard)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			b.rows[shard] = append(b.rows[shard], readRows(rec)...)
			rec.Release()
		}
	}
	for _, rec := range c.Side(1) {
		b.side += int(rec.NumRows())
	}
	if b.open != nil {
		return b.open(b)
	}
	return nil
}

func (b *testBody) Stages() []Stage {
	if b.stages == nil {
		return nil
	}
	return b.stages(b)
}

func (b *testBody) Begin(step int) error { b.steps = step; return nil }

func (b *testBody) Stop(step int) (bool, error) {
	if b.stop == nil {
		return false, nil
	}
	return b.stop(step)
}

func (b *testBody) After(step int) error {
	b.context.Report("step", step, float64(step))
	if step%2 == 0 {
		b.context.Report("even", step, float64(step*step))
	}
	return nil
}

func (b *testBody) Finish(c *Context, out Output) error {
	if b.finish != nil {
		return b.finish(c, out)
	}
	for shard := c.Range.Lo; shard < c.Range.Hi; shard++ {
		if err := emitRows(c, out, shard, append(b.rows[shard], row{int64(b.steps), fmt.Sprint(b.side)})); err != nil {
			return err
		}
	}
	return nil
}

func (b *testBody) Close() error {
	b.gang.log("body closed")
	return nil
}

// queueHooks binds a gang to the queue of queueGraph.
func queueHooks(most int, gang *testGang) hooks {
	return hooks{loops: map[string]Loop{"q": {MaxSupersteps: most, Open: func(int) (Gang, error) { return gang, nil }}}}
}

func (b *testBody) count(counter *atomic.Int64) func() error {
	return func() error { counter.Add(1); return nil }
}

// TestQueue: inputs reach the bodies, stages run on every subtask in order, the
// verdict of subtask 0 ends all, rows follow in shard order, and the report says
// what ran.
func TestQueue(t *testing.T) {
	for _, p := range []int{1, 2, 3, 8} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			g := queueGraph(8, 100, true, plan.Compute, plan.Send, plan.Sum, plan.Recv)
			var calls atomic.Int64
			gang := &testGang{body: func(subtask int) *testBody {
				return &testBody{
					stop: func(step int) (bool, error) {
						if subtask != 0 {
							panic("the criterion is subtask 0's")
						}
						return step == 5, nil
					},
					stages: func(b *testBody) []Stage {
						return []Stage{
							{Node: 3, Run: b.count(&calls)},
							{Node: 4, Run: b.count(&calls), Bytes: func() int64 { return 10 }, Program: func() string { return "direct" }},
							{Node: 5, Run: b.count(&calls)},
							{Node: 6, Run: b.count(&calls)},
						}
					},
				}
			}}
			var steps []int
			env := Env{BatchRows: 7, Progress: func(e Progress) {
				if e.Queue == "q" {
					steps = append(steps, e.Step)
				}
			}}
			got := g.run(t, context.Background(), p, env, queueHooks(100, gang))
			require.NoError(t, got.err)
			want := map[int][]row{}
			for shard := range 8 {
				want[shard] = append(sourceRows(200, 8, shard), row{5, "10"})
			}
			for b, shard := 0, 0; shard < 8; shard++ { // rows of the side input
				b += len(sourceRows(10, 8, shard))
				if shard == 7 {
					for s := range want {
						want[s][len(want[s])-1].t = fmt.Sprint(b)
					}
				}
			}
			require.Equal(t, want, got.taps[plan.NodeID(len(g.Nodes)-1)])
			require.EqualValues(t, 5*4*p, calls.Load())
			require.Equal(t, []int{1, 2, 3, 4, 5}, steps)

			q := got.report.Queues[0]
			require.Equal(t, 5, q.Supersteps)
			require.True(t, q.Stopped)
			require.Equal(t, "step", q.Series[0].Name)
			require.Equal(t, []float64{1, 2, 3, 4, 5}, q.Series[0].Values)
			even := q.Series[1].Values
			require.Equal(t, []float64{4, 16}, []float64{even[1], even[3]})
			require.True(t, math.IsNaN(even[0]) && math.IsNaN(even[2]) && math.IsNaN(even[4]))
			require.Len(t, q.Stages, 4)
			require.Equal(t, plan.NodeID(4), q.Stages[1].Node)
			require.EqualValues(t, 10*p, q.Stages[1].Bytes)
			require.Len(t, q.Steps, 5)
			var took StepReport
			for _, s := range q.Steps {
				require.GreaterOrEqual(t, s.Elapsed, time.Duration(0))
				took.Elapsed, took.Bytes = took.Elapsed+s.Elapsed, took.Bytes+s.Bytes
			}
			require.LessOrEqual(t, took.Elapsed, q.Elapsed)
			require.EqualValues(t, 10, took.Bytes, "of subtask 0 alone")
			require.Equal(t, "direct", q.Stages[1].Program)
			require.EqualValues(t, 5*p, q.Stages[3].Calls)
			require.Equal(t, p+1, strings.Count(strings.Join(gang.events, ","), "closed"))
			require.Equal(t, "gang closed", gang.events[p])
		})
	}
}

// TestQueueMaximum: without a criterion the maximum ends the loop, and Stop is
// not asked.
func TestQueueMaximum(t *testing.T) {
	gang := &testGang{body: func(int) *testBody {
		return &testBody{stop: func(int) (bool, error) { panic("not asked for") }}
	}}
	got := queueGraph(8, 3, false, plan.Compute).run(t, context.Background(), 4, Env{}, queueHooks(3, gang))
	require.NoError(t, got.err)
	require.Equal(t, 3, got.report.Queues[0].Supersteps)
	require.False(t, got.report.Queues[0].Stopped)
}

// TestRepeat: an inner loop ends by its verdict, made on subtask 0, or its maximum.
func TestRepeat(t *testing.T) {
	g := queueGraph(8, 2, false, plan.RepeatBegin, plan.Compute, plan.RepeatEnd)
	g.Nodes[3].Inputs = append(g.Nodes[3].Inputs, plan.Input{From: 5, Role: plan.Feedback})
	for _, until := range []bool{true, false} {
		var inner atomic.Int64
		gang := &testGang{body: func(subtask int) *testBody {
			rounds := 0
			return &testBody{stages: func(b *testBody) []Stage {
				r := &Repeat{Max: 7, Stages: []Stage{{Node: 4, Run: b.count(&inner)}}}
				if until {
					r.Until = func() (bool, error) { rounds++; return rounds%3 == 0, nil }
				}
				return []Stage{{Node: 3, Repeat: r}}
			}}
		}}
		got := g.run(t, context.Background(), 4, Env{}, queueHooks(2, gang))
		require.NoError(t, got.err)
		rounds := map[bool]int{true: 3, false: 7}[until]
		require.EqualValues(t, 4*2*rounds, inner.Load())
		stages := got.report.Queues[0].Stages
		require.Equal(t, []int64{8, int64(8 * rounds)}, []int64{stages[0].Calls, stages[1].Calls})
	}
}

// TestQueueFailures: whatever fails in one subtask ends all of them, is named,
// and everything is closed once. synctest fails a test that hangs.
func TestQueueFailures(t *testing.T) {
	one := func(f func() error) func(b *testBody) []Stage {
		return func(b *testBody) []Stage {
			return []Stage{{Node: 3, Shard: func() int { return 6 }, Run: func() error {
				if b.context.Subtask == 2 && b.steps == 3 {
					return f()
				}
				return b.comm.Barrier(b.context)
			}}}
		}
	}
	for name, test := range map[string]struct {
		body  testBody
		check func(step int) error
		close error
		want  string
	}{
		"stage": {body: testBody{stages: one(func() error { return errBoom })},
			want: `operator compute (test.txt:4), subtask 2 of 4, shard 6: boom`},
		"panic": {body: testBody{stages: one(func() error { panic(errBoom) })},
			want: `operator compute (test.txt:4), subtask 2 of 4, shard 6: panic: boom`},
		"open": {body: testBody{open: func(b *testBody) error {
			if b.context.Subtask == 3 {
				return errBoom
			}
			return nil
		}}, want: `operator Queue (test.txt:3), subtask 3 of 4: boom`},
		"stop": {body: testBody{stop: func(int) (bool, error) { return false, errBoom }},
			want: `operator criterion (test.txt:5), subtask 0 of 4: boom`},
		"stop panics": {body: testBody{stop: func(int) (bool, error) { panic(errBoom) }},
			want: `operator criterion (test.txt:5), subtask 0 of 4: panic: boom`},
		"finish": {body: testBody{finish: func(c *Context, _ Output) error {
			if c.Subtask == 1 {
				return errBoom
			}
			return nil
		}, shard: 3 + 1}, want: `operator QueueClose (test.txt:6), subtask 1 of 4, shard 3: boom`},
		"check": {check: func(step int) error {
			if step == 2 {
				return errBoom
			}
			return nil
		}, want: `operator Queue (test.txt:3), subtask 0 of 4: boom`},
		"close": {close: errBoom, want: "boom"},
		"unknown node": {body: testBody{stages: func(*testBody) []Stage {
			return []Stage{{Node: 0, Run: func() error { return errBoom }}}
		}}, want: `a stage of queue "q" is bound to node 0, which is none of the queue's`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gang := &testGang{check: test.check, close: test.close}
				gang.body = func(int) *testBody { b := test.body; return &b }
				got := queueGraph(8, 9, true, plan.Compute).run(t, context.Background(), 4, Env{CheckBroadcasts: true}, queueHooks(9, gang))
				require.ErrorContains(t, got.err, test.want)
				require.Len(t, gang.events, 5)
				require.Equal(t, "gang closed", gang.events[4])
			})
		})
	}
}

// TestQueueCancel: cancellation wakes members that wait for each other.
func TestQueueCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		gang := &testGang{body: func(subtask int) *testBody {
			return &testBody{stages: func(b *testBody) []Stage {
				return []Stage{{Node: 3, Run: func() error {
					if subtask == 1 && b.steps == 2 {
						<-b.context.Done()
					}
					return nil
				}}}
			}}
		}}
		go func() { synctest.Wait(); cancel() }()
		got := queueGraph(8, 9, false, plan.Compute).run(t, ctx, 3, Env{}, queueHooks(9, gang))
		require.Equal(t, context.Canceled, got.err)
		require.Len(t, gang.events, 4)
	})
}

// TestQueueBindings: what does not fit is refused, or closed again, before
// anything starts.
func TestQueueBindings(t *testing.T) {
	g := queueGraph(8, 9, false, plan.Compute)
	gang := &testGang{body: func(i int) *testBody {
		if i == 2 {
			panic("no body")
		}
		return &testBody{}
	}}
	got := g.run(t, context.Background(), 4, Env{}, queueHooks(8, gang))
	require.ErrorContains(t, got.err, `queue "q": the loop that is bound ends after 8 supersteps, the plan says 9`)
	got = g.run(t, context.Background(), 4, Env{}, hooks{})
	require.ErrorContains(t, got.err, `queue "q": no loop is bound`)
	got = g.run(t, context.Background(), 4, Env{}, queueHooks(9, gang))
	require.ErrorContains(t, got.err, "no body")
	require.Equal(t, []string{"body closed", "body closed", "gang closed"}, gang.events)
	h := hooks{loops: map[string]Loop{"q": {MaxSupersteps: 9, Open: func(int) (Gang, error) { return nil, errBoom }}}}
	got = g.run(t, context.Background(), 4, Env{}, h)
	require.ErrorIs(t, got.err, errBoom)
}

// TestSuperstepsAllocateNothing compares runs of different lengths.
func TestSuperstepsAllocateNothing(t *testing.T) {
	measure := func(steps int) float64 {
		g := queueGraph(8, steps, true, plan.Compute)
		return testing.AllocsPerRun(3, func() {
			gang := &testGang{body: func(int) *testBody {
				return &testBody{stages: func(b *testBody) []Stage {
					return []Stage{{Node: 3, Run: func() error { return nil }}}
				}}
			}}
			got := g.run(t, context.Background(), 4, Env{}, queueHooks(steps, gang))
			if got.err != nil {
				t.Fatal(got.err)
			}
		})
	}
	short, long := measure(100), measure(3100)
	require.Less(t, (long-short)/3000, 0.1, "allocations per superstep")
}
