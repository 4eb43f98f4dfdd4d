package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/shared"
)

// queueGraph returns the graph source → queue → tap, with the given stages in the queue.
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

// testGang makes the loops of a queue, and holds what they share.
type testGang struct {
	loop   func(subtask int) *testLoop
	after  func(step int) error // called by the last subtask
	close  error
	cut    func(b *testLoop, subtasks int) error
	save   func(b *testLoop) error
	closed atomic.Int32
	specs  []GangSpec
}

// open implements OpenLoops.
func (g *testGang) open(s GangSpec) (loops []Loop, err error) {
	g.specs = append(g.specs, s)
	for t := s.Here.Lo; t < s.Here.Hi; t++ {
		b := g.loop(t)
		b.gang, b.last, b.from, b.kept = g, t == s.Subtasks-1, s.From, s.RowsKept
		loops = append(loops, b)
	}
	return loops, nil
}

// testLoop is a Loop that keeps its rows by shard, and emits them with the number of supersteps.
type testLoop struct {
	gang    *testGang
	last    bool
	from    *Cut
	kept    bool // GangSpec.RowsKept
	context *Context
	comm    *collective.Comm
	rows    map[int][]row
	side    int
	steps   int

	open   func(b *testLoop) error
	stages func(b *testLoop) []Stage
	stop   func(step int) (bool, error)
	finish func(c *Context, out Output) error
	shard  int32 // the result of Shard plus 1; atomic
}

func (b *testLoop) Shard() int { return int(atomic.LoadInt32(&b.shard)) - 1 }

func (b *testLoop) Open(c *Context, in Input, comm *collective.Comm) error {
	b.context, b.comm, b.rows = c, comm, make(map[int][]row)
	if b.from != nil {
		b.steps = b.from.Step
	}
	if b.kept {
		return b.goOn(in)
	}
	for shard := c.Range.Lo; shard < c.Range.Hi; shard++ {
		for {
			rec, err := in.Next(0, shard)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			b.rows[shard] = append(b.rows[shard], readRows(arrowrows.Record(rec))...)
			rec.Release()
		}
	}
	for _, rec := range c.Side(1) {
		b.side += rec.Len()
	}
	if b.open != nil {
		return b.open(b)
	}
	return nil
}

// Cut hands over the rows of the loop's shards.
func (b *testLoop) Cut(subtasks int) (part CutPart, err error) {
	if b.gang.cut != nil {
		if err := b.gang.cut(b, subtasks); err != nil {
			return part, err
		}
	}
	return b.Save()
}

// Save returns the rows of the loop's shards.
func (b *testLoop) Save() (part CutPart, err error) {
	if b.gang.save != nil {
		if err := b.gang.save(b); err != nil {
			return part, err
		}
	}
	for shard := b.context.Range.Lo; shard < b.context.Range.Hi; shard++ {
		var saved []savedRow
		for _, r := range b.rows[shard] {
			saved = append(saved, savedRow{r.k, r.t})
		}
		data, err := rowsCodec.Append(nil, saved)
		if err != nil {
			return part, err
		}
		part.Objects = append(part.Objects, shared.Encoded{Name: "rows", Kind: shared.KindPerShard, Shard: shard, Data: data})
	}
	return part, nil
}

type savedRow struct {
	K int64
	T string
}

var rowsCodec = shared.Msgpack[[]savedRow]()

// goOn takes over the rows of the loop's shards from the Cut.
func (b *testLoop) goOn(in Input) (err error) {
	for _, part := range b.from.Parts {
		for _, e := range part.Objects {
			if !b.context.Range.Contains(e.Shard) {
				continue
			}
			saved, err := rowsCodec.Decode(e.Data)
			if err != nil {
				return err
			}
			for _, r := range saved {
				b.rows[e.Shard] = append(b.rows[e.Shard], row{r.K, r.T})
			}
		}
	}
	for _, rec := range b.context.Side(1) {
		b.side += rec.Len()
	}
	if _, err := in.Next(0, b.context.Range.Lo); err == nil || errors.Is(err, io.EOF) {
		return errors.New("there are rows to read again")
	}
	if b.open != nil {
		return b.open(b)
	}
	return nil
}

func (b *testLoop) Stages() []Stage {
	if b.stages == nil {
		return nil
	}
	return b.stages(b)
}

func (b *testLoop) Begin(step int) error { b.steps = step; return nil }

func (b *testLoop) Stop(step int) (bool, error) {
	if b.stop == nil {
		return false, nil
	}
	return b.stop(step)
}

func (b *testLoop) After(step int, _, _ bool) error {
	if b.last && b.gang.after != nil {
		return b.gang.after(step)
	}
	if b.context.Subtask != 0 {
		return nil
	}
	b.context.Report("step", step, float64(step))
	if step%2 == 0 {
		b.context.Report("even", step, float64(step*step))
	}
	return nil
}

func (b *testLoop) Finish(c *Context, out Output) error {
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

func (b *testLoop) Close() error {
	if b.gang.closed.Add(1); b.last {
		return b.gang.close
	}
	return nil
}

// queueHooks binds a gang to the queue of queueGraph.
func queueHooks(gang *testGang) hooks {
	return hooks{loops: map[string]OpenLoops{"q": gang.open}}
}

func (b *testLoop) count(counter *atomic.Int64) func() error {
	return func() error { counter.Add(1); return nil }
}

// TestQueue requires that loops get their inputs, stages run on every subtask, the verdict of
// subtask 0 ends all subtasks, rows are emitted under their shards, and the report has the
// supersteps, series, stages and costs.
func TestQueue(t *testing.T) {
	for _, p := range []int{1, 2, 3, 8} {
		t.Run(fmt.Sprint(p), func(t *testing.T) {
			g := queueGraph(8, 100, true, plan.Compute, plan.Send, plan.Sum, plan.Recv)
			var calls atomic.Int64
			gang := &testGang{loop: func(subtask int) *testLoop {
				return &testLoop{
					stop: func(step int) (bool, error) {
						if subtask != 0 {
							panic("the criterion must run on subtask 0 only")
						}
						return step == 5, nil
					},
					stages: func(b *testLoop) []Stage {
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
			got := g.run(t, context.Background(), p, env, queueHooks(gang))
			require.NoError(t, got.err)
			want := map[int][]row{}
			for shard := range 8 {
				want[shard] = append(sourceRows(200, 8, shard), row{5, "10"})
			}
			for b, shard := 0, 0; shard < 8; shard++ { // b counts the rows of the side input
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
			require.EqualValues(t, 10, took.Bytes, "the bytes of supersteps must be those of subtask 0")
			require.Equal(t, "direct", q.Stages[1].Program)
			require.EqualValues(t, 5*p, q.Stages[3].Calls)
			require.EqualValues(t, p, gang.closed.Load())
		})
	}
}

// TestQueueMaximum requires that the maximum ends a queue that has no criterion, and that Stop is
// not called.
func TestQueueMaximum(t *testing.T) {
	gang := &testGang{loop: func(int) *testLoop {
		return &testLoop{stop: func(int) (bool, error) { panic("Stop must not be called without a criterion") }}
	}}
	got := queueGraph(8, 3, false, plan.Compute).run(t, context.Background(), 4, Env{}, queueHooks(gang))
	require.NoError(t, got.err)
	require.Equal(t, 3, got.report.Queues[0].Supersteps)
	require.False(t, got.report.Queues[0].Stopped)
}

// TestRepeat requires that an inner loop ends by the verdict of subtask 0, or by its maximum.
func TestRepeat(t *testing.T) {
	g := queueGraph(8, 2, false, plan.RepeatBegin, plan.Compute, plan.RepeatEnd)
	g.Nodes[3].Inputs = append(g.Nodes[3].Inputs, plan.Input{From: 5, Role: plan.Feedback})
	for _, until := range []bool{true, false} {
		var inner atomic.Int64
		gang := &testGang{loop: func(subtask int) *testLoop {
			rounds := 0
			return &testLoop{stages: func(b *testLoop) []Stage {
				r := &Repeat{Max: 7, Stages: []Stage{{Node: 4, Run: b.count(&inner)}}}
				if until {
					r.Until = func() (bool, error) { rounds++; return rounds%3 == 0, nil }
				}
				return []Stage{{Node: 3, Repeat: r}}
			}}
		}}
		got := g.run(t, context.Background(), 4, Env{}, queueHooks(gang))
		require.NoError(t, got.err)
		rounds := map[bool]int{true: 3, false: 7}[until]
		require.EqualValues(t, 4*2*rounds, inner.Load())
		stages := got.report.Queues[0].Stages
		require.Equal(t, []int64{8, int64(8 * rounds)}, []int64{stages[0].Calls, stages[1].Calls})
	}
}

// TestQueueFailures requires that any failure in one subtask ends all subtasks, that the error
// names this subtask, and that every loop is closed once. synctest fails a test that hangs.
func TestQueueFailures(t *testing.T) {
	one := func(f func() error) func(b *testLoop) []Stage {
		return func(b *testLoop) []Stage {
			return []Stage{{Node: 3, Shard: func() int { return 6 }, Run: func() error {
				if b.context.Subtask == 2 && b.steps == 3 {
					return f()
				}
				return b.comm.Barrier(b.context)
			}}}
		}
	}
	for name, test := range map[string]struct {
		body  testLoop
		after func(step int) error
		close error
		want  string
	}{
		"stage": {body: testLoop{stages: one(func() error { return errBoom })},
			want: `operator compute (test.txt:4), subtask 2 of 4, shard 6: boom`},
		"panic": {body: testLoop{stages: one(func() error { panic(errBoom) })},
			want: `operator compute (test.txt:4), subtask 2 of 4, shard 6: panic: boom`},
		"open": {body: testLoop{open: func(b *testLoop) error {
			if b.context.Subtask == 3 {
				return errBoom
			}
			return nil
		}}, want: `operator Queue (test.txt:3), subtask 3 of 4: boom`},
		"stop": {body: testLoop{stop: func(int) (bool, error) { return false, errBoom }},
			want: `operator criterion (test.txt:5), subtask 0 of 4: boom`},
		"stop panics": {body: testLoop{stop: func(int) (bool, error) { panic(errBoom) }},
			want: `operator criterion (test.txt:5), subtask 0 of 4: panic: boom`},
		"finish": {body: testLoop{finish: func(c *Context, _ Output) error {
			if c.Subtask == 1 {
				return errBoom
			}
			return nil
		}, shard: 3 + 1}, want: `operator QueueClose (test.txt:6), subtask 1 of 4, shard 3: boom`},
		"after": {after: func(step int) error {
			if step == 2 {
				return errBoom
			}
			return nil
		}, want: `operator Queue (test.txt:3), subtask 3 of 4: boom`},
		"close": {close: errBoom, want: "boom"},
		"unknown node": {body: testLoop{stages: func(*testLoop) []Stage {
			return []Stage{{Node: 0, Run: func() error { return errBoom }}}
		}}, want: `a stage of queue "q" is bound to node 0, which is not one of the queue's`},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gang := &testGang{after: test.after, close: test.close}
				gang.loop = func(int) *testLoop { b := test.body; return &b }
				got := queueGraph(8, 9, true, plan.Compute).run(t, context.Background(), 4, Env{}, queueHooks(gang))
				require.ErrorContains(t, got.err, test.want)
				require.EqualValues(t, 4, gang.closed.Load())
			})
		})
	}
}

// TestQueueCancel requires that cancellation ends subtasks that wait for each other.
func TestQueueCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		gang := &testGang{loop: func(subtask int) *testLoop {
			return &testLoop{stages: func(b *testLoop) []Stage {
				return []Stage{{Node: 3, Run: func() error {
					if subtask == 1 && b.steps == 2 {
						<-b.context.Done()
					}
					return nil
				}}}
			}}
		}}
		go func() { synctest.Wait(); cancel() }()
		got := queueGraph(8, 9, false, plan.Compute).run(t, ctx, 3, Env{}, queueHooks(gang))
		require.Equal(t, context.Canceled, got.err)
		require.EqualValues(t, 3, gang.closed.Load())
	})
}

// TestQueueBindings requires that an OpenLoops that is missing, fails or returns a wrong number
// of loops is reported, and that the loops that it returned are closed.
func TestQueueBindings(t *testing.T) {
	g := queueGraph(8, 9, false, plan.Compute)
	gang := &testGang{loop: func(i int) *testLoop {
		if i == 2 {
			panic("no loop")
		}
		return &testLoop{}
	}}
	got := g.run(t, context.Background(), 4, Env{}, hooks{})
	require.ErrorContains(t, got.err, `queue "q": no loop is bound`)
	got = g.run(t, context.Background(), 4, Env{}, queueHooks(gang))
	require.ErrorContains(t, got.err, "no loop")
	require.Zero(t, gang.closed.Load(), "the engine must close no loop if OpenLoops fails, which closes its loops itself")
	few := func(GangSpec) ([]Loop, error) { return []Loop{&testLoop{gang: gang}}, nil }
	got = g.run(t, context.Background(), 4, Env{}, hooks{loops: map[string]OpenLoops{"q": few}})
	require.ErrorContains(t, got.err, `open queue "q": 1 loops for the 4 subtasks here`)
	require.EqualValues(t, 1, gang.closed.Load())
	fails := func(GangSpec) ([]Loop, error) { return nil, errBoom }
	got = g.run(t, context.Background(), 4, Env{}, hooks{loops: map[string]OpenLoops{"q": fails}})
	require.ErrorIs(t, got.err, errBoom)
}

// TestSuperstepsAllocateNothing requires that a run of 3,100 supersteps makes hardly more
// allocations than a run of 100 supersteps.
func TestSuperstepsAllocateNothing(t *testing.T) {
	measure := func(steps int) float64 {
		g := queueGraph(8, steps, true, plan.Compute)
		return testing.AllocsPerRun(3, func() {
			gang := &testGang{loop: func(int) *testLoop {
				return &testLoop{stages: func(b *testLoop) []Stage {
					return []Stage{{Node: 3, Run: func() error { return nil }}}
				}}
			}}
			got := g.run(t, context.Background(), 4, Env{}, queueHooks(gang))
			if got.err != nil {
				t.Fatal(got.err)
			}
		})
	}
	short, long := measure(100), measure(3100)
	require.Less(t, (long-short)/3000, 0.1, "a superstep must make fewer than 0.1 allocations on average")
}
