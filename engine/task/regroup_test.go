package task

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// cutAfter returns an Env.Regroup that returns at[step] after each superstep.
func cutAfter(at map[int]int) func(string, int) int {
	return func(_ string, step int) int { return at[step] }
}

// cutRun runs a queueGraph whose criterion ends the queue in superstep 5, unless the maximum,
// most, ends it earlier.
func cutRun(t *testing.T, p, most int, env Env) (*testGraph, result, *testGang) {
	g := queueGraph(8, most, true, plan.Compute, plan.Send, plan.Sum, plan.Recv)
	gang := &testGang{loop: func(int) *testLoop {
		return &testLoop{
			stop: func(step int) (bool, error) { return step == 5, nil },
			stages: func(b *testLoop) []Stage {
				quiet := func() error { return nil }
				return []Stage{
					{Node: 3, Run: quiet},
					{Node: 4, Run: quiet, Bytes: func() int64 { return 10 }, Program: func() string { return "direct" }},
					{Node: 5, Run: quiet},
					{Node: 6, Run: quiet},
				}
			},
		}
	}}
	return g, g.run(t, context.Background(), p, env, queueHooks(gang)), gang
}

// TestRegroup requires that a queue that is cut continues at the requested parallelism, and has
// the supersteps, series and rows of a queue that is not cut. The report must include the costs
// of all gangs.
func TestRegroup(t *testing.T) {
	for _, most := range []int{100, 3} {
		for _, p := range []int{1, 3} {
			g, want, _ := cutRun(t, p, most, Env{})
			require.NoError(t, want.err)
			tap := plan.NodeID(len(g.Nodes) - 1)
			whole := want.report.Queues[0]
			for _, at := range []map[int]int{
				{1: 2}, {2: 8, 4: 1}, {1: 3, 2: 1, 3: 5, 4: 2, 5: 7}, {min(most, 5): 4}, {3: p}, {9: 2},
			} {
				t.Run(fmt.Sprint(most, p, at), func(t *testing.T) {
					var steps []int
					env := Env{Regroup: cutAfter(at), Turns: NewTurns(p == 3), Progress: func(e Progress) {
						if e.Queue == "q" {
							steps = append(steps, e.Step)
						}
					}}
					_, got, gang := cutRun(t, p, most, env)
					require.NoError(t, got.err)
					require.Equal(t, want.taps[tap], got.taps[tap])
					last := min(most, 5)
					calls, closed, now := 0, p, p
					for step := 1; step <= last; step++ {
						require.Equal(t, step, steps[step-1])
						calls += now
						if at[step] > 0 {
							now = at[step]
							closed += now
						}
					}
					require.EqualValues(t, closed, gang.closed.Load())
					require.Len(t, steps, last)

					q := got.report.Queues[0]
					require.Equal(t, []any{whole.Supersteps, whole.Stopped}, []any{q.Supersteps, q.Stopped})
					require.Len(t, q.Series, len(whole.Series))
					for i, s := range q.Series {
						require.Equal(t, whole.Series[i].Name, s.Name)
						require.Len(t, s.Values, last)
						for k, v := range s.Values {
							require.Equal(t, math.Float64bits(whole.Series[i].Values[k]), math.Float64bits(v))
						}
					}
					require.Len(t, q.Steps, last)
					require.Len(t, q.Stages, 4)
					require.EqualValues(t, calls, q.Stages[3].Calls)
					require.EqualValues(t, 10*closed, q.Stages[1].Bytes, "bytes must be summed over the subtasks of all gangs")
					require.Equal(t, "direct", q.Stages[1].Program)
					for i := range got.report.Vertices {
						v, before := got.report.Vertices[i], want.report.Vertices[i]
						require.Len(t, v.Subtasks, len(before.Subtasks))
						var rows, was [2]int64
						for k := range v.Subtasks {
							rows[0], rows[1] = rows[0]+v.Subtasks[k].RowsIn, rows[1]+v.Subtasks[k].RowsOut
							was[0], was[1] = was[0]+before.Subtasks[k].RowsIn, was[1]+before.Subtasks[k].RowsOut
							require.Equal(t, before.Subtasks[k].Shards, v.Subtasks[k].Shards)
						}
						require.Equal(t, was, rows, "the rows in and out of vertex %s must be as without a cut", v.Name)
					}
				})
			}
		}
	}
}

// TestRegroupAsksSubtask0 requires that Env.Regroup is called once per superstep, not once per
// subtask.
func TestRegroupAsksSubtask0(t *testing.T) {
	var asked atomic.Int32
	_, got, gang := cutRun(t, 4, 100, Env{Regroup: func(queue string, step int) int {
		if queue != "q" || int(asked.Add(1)) != step {
			panic("Regroup must be called once per superstep")
		}
		return 0
	}})
	require.NoError(t, got.err)
	require.EqualValues(t, 5, asked.Load())
	require.Len(t, gang.specs, 1)
	require.Equal(t, GangSpec{Queue: "q", Job: gang.specs[0].Job, Subtasks: 4, Here: sharding.Range{Hi: 4}, Sessions: gang.specs[0].Sessions}, gang.specs[0])
}

// TestRegroupFailures requires that any failure during a cut ends the run with this failure, and
// that all loops are closed.
func TestRegroupFailures(t *testing.T) {
	for name, c := range map[string]struct {
		to   int
		cut  func(b *testLoop, subtasks int) error
		loop func(g *testGang, b *testLoop) // changes the loops of the second gang
		want string
	}{
		"too many":        {to: 9, want: `queue "q" is to continue with 9 subtasks after superstep 2: want 1 to 8, the number of shards`},
		"below none":      {to: -1, want: `queue "q" is to continue with -1 subtasks after superstep 2`},
		"refused":         {to: 3, cut: func(*testLoop, int) error { return errBoom }, want: "of 4: boom"},
		"refused by one":  {to: 3, cut: func(b *testLoop, _ int) error { return onlyOn(b, 2, errBoom) }, want: "operator Queue (test.txt:3), subtask 2 of 4: boom"},
		"panic in cut":    {to: 3, cut: func(*testLoop, int) error { panic("broken") }, want: "broken"},
		"the next opens":  {to: 3, loop: func(_ *testGang, b *testLoop) { b.open = func(*testLoop) error { return errBoom } }, want: "operator Queue (test.txt:3), subtask "},
		"none is made":    {to: 3, loop: func(*testGang, *testLoop) { panic("no loop") }, want: "no loop"},
		"the next finish": {to: 3, loop: func(_ *testGang, b *testLoop) { b.finish = func(*Context, Output) error { return errBoom } }, want: "operator QueueClose (test.txt:5), subtask "},
		"one of the next ": {to: 8, loop: func(_ *testGang, b *testLoop) {
			b.finish = func(c *Context, _ Output) error { return onlyAt(c, 7, errBoom) }
		}, want: "subtask 7 of 8"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				gang := &testGang{cut: c.cut}
				var made atomic.Int32
				gang.loop = func(int) *testLoop {
					b := &testLoop{}
					if len(gang.specs) > 1 && c.loop != nil {
						c.loop(gang, b)
					}
					made.Add(1)
					return b
				}
				env := Env{Regroup: cutAfter(map[int]int{2: c.to}), Sessions: shared.NewStore()}
				got := queueGraph(8, 4, false, plan.Compute).run(t, context.Background(), 4, env, queueHooks(gang))
				require.ErrorContains(t, got.err, c.want)
				require.Equal(t, made.Load(), gang.closed.Load())
				require.Zero(t, env.Sessions.Len())
			})
		})
	}
}

func onlyOn(b *testLoop, subtask int, err error) error { return onlyAt(b.context, subtask, err) }

func onlyAt(c *Context, subtask int, err error) error {
	if c.Subtask == subtask {
		return err
	}
	return nil
}

// TestRegroupCancelled requires that a run ends if it is cancelled while a queue is cut, and that
// all loops are closed.
func TestRegroupCancelled(t *testing.T) {
	for _, within := range []string{"cut", "open"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			gang := &testGang{}
			wait := func(b *testLoop) error {
				if b.context.Subtask != 0 {
					return nil
				}
				<-b.context.Done()
				return context.Cause(b.context)
			}
			if within == "cut" {
				gang.cut = func(b *testLoop, _ int) error { return wait(b) }
			}
			gang.loop = func(int) *testLoop {
				b := &testLoop{}
				if within == "open" && len(gang.specs) > 1 {
					b.open = wait
				}
				return b
			}
			go func() { synctest.Wait(); cancel() }()
			env := Env{Regroup: cutAfter(map[int]int{2: 5})}
			got := queueGraph(8, 4, false, plan.Compute).run(t, ctx, 3, env, queueHooks(gang))
			require.Equal(t, context.Canceled, got.err)
			want := 3
			if within == "open" {
				want += 5
			}
			require.EqualValues(t, want, gang.closed.Load())
		})
	}
}

// TestRegroupOfMultiProcessQueues requires that the run fails if a queue whose subtasks are in
// several processes is to be regrouped.
func TestRegroupOfMultiProcessQueues(t *testing.T) {
	for _, criterion := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			g := queueGraph(8, 5, criterion, plan.Compute)
			got := g.runParts(t, context.Background(), 4, 2, Env{Regroup: cutAfter(map[int]int{3: 2})}, func(int) hooks {
				return queueHooks(&testGang{loop: func(int) *testLoop { return &testLoop{} }})
			})
			require.ErrorContains(t, got.err, `queue "q" is to continue with 2 subtasks after superstep 3, and those that it has are in several processes`)
		})
	}
}

// TestCutsAreData requires that encoding and decoding does not change a Cut, and that DecodeCut
// refuses Cuts that no gang can have handed over.
func TestCutsAreData(t *testing.T) {
	c := Cut{
		Step: 3, Last: true, Stopped: true,
		Parts: []CutPart{
			{Objects: []shared.Encoded{{Name: "a", Kind: shared.KindReplicated, Shard: -1, Data: []byte{1}}}},
			{Objects: []shared.Encoded{{Name: "b", Kind: shared.KindPerShard, Shard: 7, Data: []byte{2, 3}}}, Own: []byte{}},
		},
		Series: []Series{{Name: "s", Values: []float64{1, 2, 3}}}, First: []int{1},
		Steps: make([]StepReport, 3), Elapsed: 4, Compute: 5, Communicate: 6,
	}
	data, err := c.Encode()
	require.NoError(t, err)
	got, err := DecodeCut(data)
	require.NoError(t, err)
	require.Equal(t, &c, got)
	require.Equal(t, 2, got.Subtasks())
	for i := range data {
		_, _ = DecodeCut(data[:i]) // must not panic
	}
	for want, damage := range map[string]func(c *Cut){
		"superstep 0":          func(c *Cut) { c.Step = 0 },
		"0 subtasks":           func(c *Cut) { c.Parts = nil },
		"was stopped":          func(c *Cut) { c.Last = false },
		"2 have begun":         func(c *Cut) { c.First = []int{1, 1} },
		"4 supersteps":         func(c *Cut) { c.Steps = make([]StepReport, 4) },
		"from superstep 0":     func(c *Cut) { c.First = []int{0} },
		"from superstep 4":     func(c *Cut) { c.First = []int{4} },
		"3 values of \"s\" fr": func(c *Cut) { c.Step, c.Steps = 2, nil },
	} {
		damaged := c
		damage(&damaged)
		data, err := damaged.Encode()
		require.NoError(t, err)
		_, err = DecodeCut(data)
		require.ErrorContains(t, err, want)
	}
	_, err = DecodeCut(nil)
	require.Error(t, err)
	require.False(t, errors.Is(err, context.Canceled))
}
