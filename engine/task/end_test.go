package task

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/shared"
)

// TestNoCallsAfterTheEnd requires that, after the run has ended, only Close is called on
// operators, whatever the subtasks were doing at that time.
func TestNoCallsAfterTheEnd(t *testing.T) {
	for name, test := range map[string]func(end func()) (funcOperator, string){
		"open": func(end func()) (funcOperator, string) {
			return funcOperator{open: func(*Context) error { end(); return nil }}, "a = source rows=40\nb = user a"
		},
		"process": func(end func()) (funcOperator, string) {
			return funcOperator{process: func(_ *Context, _, s int, rows arrow.Record, out Output) error {
				end()
				return out.Emit(s, arrowrows.Batch(rows))
			}}, "a = source rows=400\nb = user a"
		},
		"end of a shard": func(end func()) (funcOperator, string) {
			return funcOperator{end: func(*Context, int, Output) error { end(); return nil }}, "a = source rows=0\nb = user a"
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			ended, calls := false, 0 // there is only one goroutine
			op, text := test(func() { ended = true; calls++; cancel() })
			late := &funcOperator{process: func(*Context, int, int, arrow.Record, Output) error { calls++; return nil }}
			late.open = func(*Context) error {
				if ended {
					calls++
				}
				return nil
			}
			late.end = func(*Context, int, Output) error { calls++; return nil }
			late.finish = func(*Context, Output) error { calls++; return nil }
			op.finish = late.finish
			h := with(op)
			h.operators["late"] = func() Operator { return late }
			got := parseGraph(8, text+"\nc = late b").run(t, ctx, 1, Env{BatchRows: 7}, h)
			require.Equal(t, context.Canceled, got.err)
			require.Equal(t, 1, calls)
		})
	}
}

// TestNoCallsInQueuesAfterTheEnd requires the same of queues, if the run ends in a stage, in a
// round of an inner loop, in the criterion or while rows are emitted.
func TestNoCallsInQueuesAfterTheEnd(t *testing.T) {
	for _, where := range []string{"stage", "round", "criterion", "finish"} {
		t.Run(where, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			var calls []string
			call := func(at string) {
				calls = append(calls, at)
				if at == where {
					cancel()
				}
			}
			gang := &testGang{loop: func(int) *testLoop {
				return &testLoop{
					stages: func(*testLoop) []Stage {
						return []Stage{
							{Node: 3, Run: func() error { call("stage"); return nil }},
							{Node: 4, Repeat: &Repeat{Max: 2, Until: func() (bool, error) { call("until"); return false, nil }, Stages: []Stage{
								{Node: 5, Run: func() error { call("round"); return nil }},
							}}},
						}
					},
					stop: func(int) (bool, error) { call("criterion"); return true, nil },
					finish: func(c *Context, out Output) error {
						for shard := range 8 {
							call("finish")
							if err := emitRows(c, out, shard, []row{{1, "x"}}); err != nil {
								return err
							}
						}
						return nil
					},
				}
			}}
			g := queueGraph(8, 9, true, plan.Compute, plan.RepeatBegin, plan.Compute, plan.RepeatEnd)
			g.Nodes[4].Inputs = append(g.Nodes[4].Inputs, plan.Input{From: 6, Role: plan.Feedback})
			got := g.run(t, ctx, 1, Env{}, queueHooks(gang))
			require.Equal(t, context.Canceled, got.err)
			require.Equal(t, where, calls[len(calls)-1], "%v", calls)
		})
	}
}

// TestAbandonedMember requires that the error names the subtask and the shard if a subtask of a
// queue hangs.
func TestAbandonedMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		ctx, cancel := context.WithCancel(context.Background())
		gang := &testGang{}
		gang.loop = func(subtask int) *testLoop {
			b := &testLoop{}
			b.finish = func(*Context, Output) error {
				if subtask == 1 {
					atomic.StoreInt32(&b.shard, 5+1)
					<-release
				}
				return nil
			}
			return b
		}
		go func() { synctest.Wait(); cancel() }()
		// The abandoned subtask does not release its side input, so the test uses no checked
		// allocator.
		g := queueGraph(8, 2, false, plan.Compute)
		compiled, err := plan.Compile(g.Graph, 2)
		require.NoError(t, err)
		_, err = Run(ctx, compiled, g.Graph, g.bindings(queueHooks(gang)), Env{SpillDir: t.TempDir()})
		var ae *AbandonedError
		require.ErrorAs(t, err, &ae)
		require.Equal(t, []string{"operator QueueClose (test.txt:5), subtask 1 of 2, shard 5"}, ae.Functions)
		close(release)
		synctest.Wait()
	})
}

// TestAbandonedMembersKeepTheirObjects requires that a process that ends does not release the objects of a
// queue whose functions may still run.
func TestAbandonedMembersKeepTheirObjects(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			release := make(chan struct{})
			ctx, cancel := context.WithCancel(context.Background())
			gang, object := &testGang{}, &releasable{}
			gang.loop = func(subtask int) *testLoop {
				if subtask == 0 {
					session, err := gang.specs[0].Sessions.Open(gang.specs[0].Job, gang.specs[0].Queue, 2)
					require.NoError(t, err)
					shared.Scratch[*releasable]("object").Put(session.Subtask(0), object)
				}
				return &testLoop{finish: func(c *Context, _ Output) error {
					if hangs {
						<-release
					}
					<-c.Done()
					return context.Cause(c)
				}}
			}
			go func() { synctest.Wait(); cancel() }()
			g := queueGraph(8, 2, false, plan.Compute)
			compiled, err := plan.Compile(g.Graph, 2)
			require.NoError(t, err)
			kept := NewRetained()
			_, err = Run(ctx, compiled, g.Graph, g.bindings(queueHooks(gang)), Env{SpillDir: t.TempDir(), Retained: kept})
			require.Error(t, err)
			require.NoError(t, kept.Close())
			require.Equal(t, !hangs, object.released.Load())
			close(release)
			synctest.Wait()
		})
	}
}

// releasable is an object that notes that it was released.
type releasable struct{ released atomic.Bool }

func (r *releasable) Release() { r.released.Store(true) }

// TestQueueTimes requires that the time of waiting for other subtasks does not count as busy
// time, neither in stages nor in verdicts, and that the time of the criterion counts for its
// node. synctest makes the times exact.
func TestQueueTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const steps = 3
		gang := &testGang{loop: func(subtask int) *testLoop {
			return &testLoop{
				stages: func(b *testLoop) []Stage {
					waited := time.Duration(0)
					return []Stage{{
						Node: 3,
						Run: func() error {
							time.Sleep(time.Duration(100-70*subtask) * time.Millisecond) // 100 ms or 30 ms
							began := time.Now()
							err := b.comm.Barrier(b.context)
							waited += time.Since(began)
							return err
						},
						Waited: func() time.Duration { return waited },
					}}
				},
				stop: func(int) (bool, error) { time.Sleep(50 * time.Millisecond); return false, nil },
			}
		}}
		got := queueGraph(8, steps, true, plan.Compute).run(t, context.Background(), 2, Env{}, queueHooks(gang))
		require.NoError(t, got.err)
		require.Equal(t, steps*130*time.Millisecond, got.report.Queues[0].Stages[0].Busy)
		busy, waiting := [2]time.Duration{}, [2]time.Duration{}
		for _, v := range got.report.Vertices {
			for _, o := range v.Subtasks[0].Operators {
				if o.Node == 4 { // the criterion
					require.Equal(t, steps*50*time.Millisecond, v.Subtasks[0].Busy-stageTime(v, 3, steps*100*time.Millisecond))
				}
			}
			if n := v.Subtasks[0].Operators[0].Node; n < 2 || n > 5 { // not a node of the queue
				continue
			}
			for i, s := range v.Subtasks {
				busy[i] += s.Busy
				waiting[i] += s.Waiting
			}
		}
		require.Equal(t, [2]time.Duration{steps * 150 * time.Millisecond, steps * 30 * time.Millisecond}, busy)
		require.Equal(t, [2]time.Duration{0, steps * 120 * time.Millisecond}, waiting)
	})
}

// stageTime returns d if the vertex contains the node, otherwise 0.
func stageTime(v VertexReport, node plan.NodeID, d time.Duration) time.Duration {
	for _, o := range v.Subtasks[0].Operators {
		if o.Node == node {
			return d
		}
	}
	return 0
}

// TestForeignTaskError requires that Run returns the cause of the context unchanged if the
// context ends because another run has failed.
func TestForeignTaskError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := &TaskError{Operator: "Map", Err: errBoom}
	op := funcOperator{open: func(c *Context) error { cancel(cause); <-c.Done(); return c.Err() }}
	got := parseGraph(8, pipeline).run(t, ctx, 2, Env{}, with(op))
	require.Same(t, cause, got.err)
}

// TestGoexitOutsideOfSubtasks requires that sinks are aborted and files are removed even if a
// function that Run calls ends its goroutine.
func TestGoexitOutsideOfSubtasks(t *testing.T) {
	for _, where := range []string{"factory", "begin", "commit", "abort"} {
		t.Run(where, func(t *testing.T) {
			var log []string
			h := with(funcOperator{open: func(*Context) error {
				if where == "abort" {
					return errBoom
				}
				return nil
			}})
			if where == "factory" {
				h.operators["user"] = func() Operator { runtime.Goexit(); return nil }
			}
			h.sinks = map[string]Sink{"c": &testSink{"c", &log, ""}, "d": &exitingSink{testSink{"d", &log, ""}, where}}
			got := parseGraph(8, `
				a = source rows=10
				b = user a
				c = tap b
				d = tap a`).run(t, context.Background(), 2, Env{}, h)
			require.ErrorIs(t, got.err, errGoexit)
			require.Contains(t, log, map[bool]string{true: "d abort", false: "c abort"}[where == "commit"])
		})
	}
}

// exitingSink ends its goroutine in one of its steps.
type exitingSink struct {
	testSink
	at string
}

func (s *exitingSink) exit(step string) error {
	_ = s.do(step)
	if s.at == step {
		runtime.Goexit()
	}
	return nil
}

func (s *exitingSink) Begin() error  { return s.exit("begin") }
func (s *exitingSink) Commit() error { return s.exit("commit") }
func (s *exitingSink) Abort() error  { return s.exit("abort") }

// TestSpillDirIsRemoved requires that a run removes the directories that it has made, except
// directories with other contents, and that it removes no other directories.
func TestSpillDirIsRemoved(t *testing.T) {
	base := t.TempDir()
	s, err := newScratch(filepath.Join(base, "a", "b", "c"))
	require.NoError(t, err)
	require.NoError(t, s.remove())
	left, err := os.ReadDir(base)
	require.NoError(t, err)
	require.Empty(t, left)

	s, err = newScratch(filepath.Join(base, "a", "b"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(base, "a", "mine"), nil, 0o600))
	require.NoError(t, s.remove())
	require.NoDirExists(t, filepath.Join(base, "a", "b"))
	require.FileExists(t, filepath.Join(base, "a", "mine"))

	require.NoError(t, os.Mkdir(filepath.Join(base, "there"), 0o755))
	s, err = newScratch(filepath.Join(base, "there"))
	require.NoError(t, err)
	require.NoError(t, s.remove())
	require.DirExists(t, filepath.Join(base, "there"))

	_, err = newScratch(filepath.Join(base, "new", "a\x00b"))
	require.Error(t, err)
	require.NoDirExists(t, filepath.Join(base, "new"))
}
