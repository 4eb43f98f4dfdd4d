package task

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/shared"
)

// funcOperator is an operator made of functions. By default it passes on its rows unchanged.
type funcOperator struct {
	open    func(c *Context) error
	process func(c *Context, port, shard int, rows arrow.Record, out Output) error
	end     func(c *Context, shard int, out Output) error
	finish  func(c *Context, out Output) error
	close   func() error
}

func (f *funcOperator) Open(c *Context) error {
	if f.open != nil {
		return f.open(c)
	}
	return nil
}

func (f *funcOperator) Process(c *Context, port, shard int, in columnar.Batch, out Output) error {
	rows := arrowrows.Record(in)
	if f.process != nil {
		return f.process(c, port, shard, rows, out)
	}
	return out.Emit(shard, arrowrows.Batch(rows))
}

func (f *funcOperator) EndShard(c *Context, shard int, out Output) error {
	if f.end != nil {
		return f.end(c, shard, out)
	}
	return nil
}

func (f *funcOperator) Finish(c *Context, out Output) error {
	if f.finish != nil {
		return f.finish(c, out)
	}
	return nil
}

func (f *funcOperator) Close() error {
	if f.close != nil {
		return f.close()
	}
	return nil
}

// with returns hooks that bind one operator, shared by all subtasks, to the op "user".
func with(f funcOperator) hooks {
	return hooks{operators: map[string]func() Operator{"user": func() Operator { return &f }}}
}

const pipeline = `
	a = source rows=400
	b = map a/hash
	c = user b
	d = tap c/rebalance`

var errBoom = errors.New("boom")

// TestTaskError requires that a failure names its operator, source line, subtask and shard. It
// must do so only once, however many operators the failure has passed through.
func TestTaskError(t *testing.T) {
	at := func(shard int) func(*Context, int, int, arrow.Record, Output) error {
		return func(_ *Context, _, s int, rows arrow.Record, out Output) error {
			if s == shard {
				return errBoom
			}
			return out.Emit(s, arrowrows.Batch(rows))
		}
	}
	misplaced := func(_ *Context, _, s int, rows arrow.Record, out Output) error {
		_ = out.Emit(s+1, arrowrows.Batch(rows)) // the failure is ignored
		return nil
	}
	onZero := func(c *Context) error {
		if c.Subtask == 0 {
			return errBoom
		}
		return nil
	}
	for _, test := range []struct {
		name string
		op   funcOperator
		want string
	}{
		{"process", funcOperator{process: at(5)}, `operator user "c" (test.txt:3), subtask 1 of 2, shard 5: boom`},
		{"end", funcOperator{end: func(_ *Context, s int, _ Output) error {
			if s == 6 {
				return errBoom
			}
			return nil
		}}, `operator user "c" (test.txt:3), subtask 1 of 2, shard 6: boom`},
		{"open", funcOperator{open: onZero}, `operator user "c" (test.txt:3), subtask 0 of 2: boom`},
		{"finish", funcOperator{finish: func(c *Context, _ Output) error { return onZero(c) }}, `operator user "c" (test.txt:3), subtask 0 of 2, shard 3: boom`},
		{"close", funcOperator{close: func() error { return errBoom }}, `operator user "c" (test.txt:3), subtask`},
		{"misplaced", funcOperator{process: misplaced}, `emit under shard`},
		{"goexit", funcOperator{open: func(c *Context) error {
			if c.Subtask == 1 {
				runtime.Goexit()
			}
			return nil
		}}, `operator user "c" (test.txt:3), subtask 1 of 2: the function ended its goroutine`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := parseGraph(8, pipeline).run(t, context.Background(), 2, Env{BatchRows: 7}, with(test.op))
			var te *TaskError
			require.ErrorAs(t, got.err, &te)
			require.Equal(t, plan.NodeID(2), te.Node)
			require.ErrorContains(t, got.err, test.want)
		})
	}
}

// TestLowestShard requires that, of several failures, the failure of the lowest shard is
// reported and not the earliest failure.
func TestLowestShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := funcOperator{open: func(c *Context) error { return nil }}
		var together sync.WaitGroup
		together.Add(4)
		failed.process = func(c *Context, _, s int, rows arrow.Record, _ Output) error {
			together.Done()
			together.Wait() // all subtasks process their first shard with rows
			time.Sleep(time.Duration(10-c.Subtask) * time.Millisecond)
			return fmt.Errorf("%w at %d", errBoom, s)
		}
		got := parseGraph(8, `
			a = source rows=400
			b = user a`).run(t, context.Background(), 4, Env{BatchRows: 1000}, with(failed))
		require.EqualError(t, got.err, `operator user "b" (test.txt:2), subtask 0 of 4, shard 0: boom at 0`)
	})
}

// TestPanic requires that a panic is reported as an error with the innermost frames of user code.
func TestPanic(t *testing.T) {
	for name, value := range map[string]any{"text": "lost it", "error": errBoom, "nil map": nil} {
		t.Run(name, func(t *testing.T) {
			op := funcOperator{process: func(*Context, int, int, arrow.Record, Output) error {
				if value == nil {
					counts := func() map[string]int { return nil }
					counts()["x"] = 1
				}
				panic(value)
			}}
			got := parseGraph(8, pipeline).run(t, context.Background(), 2, Env{}, with(op))
			var pe *PanicError
			require.ErrorAs(t, got.err, &pe)
			require.Contains(t, pe.Frames[0], "TestPanic")
			require.Contains(t, pe.Frames[0], "failure_test.go")
			require.ErrorContains(t, got.err, `operator user "c" (test.txt:3)`)
			if value == errBoom {
				require.ErrorIs(t, got.err, errBoom)
			}
		})
	}
}

// TestAccessError requires that an AccessError, with which the access to a session key panics,
// is reported as an ordinary error.
func TestAccessError(t *testing.T) {
	op := funcOperator{open: func(*Context) error {
		panic(&shared.AccessError{Op: "get", Key: "points", Err: shared.ErrMissing, Subtask: -1, Shard: -1})
	}}
	got := parseGraph(8, pipeline).run(t, context.Background(), 2, Env{}, with(op))
	require.ErrorIs(t, got.err, shared.ErrMissing)
	var pe *PanicError
	require.False(t, errors.As(got.err, &pe))
}

// TestFactoryPanics requires that a function that makes operators and panics, or returns nil, is
// reported like a failure of a running operator.
func TestFactoryPanics(t *testing.T) {
	h := hooks{operators: map[string]func() Operator{"user": func() Operator { panic("no") }}}
	got := parseGraph(8, pipeline).run(t, context.Background(), 2, Env{}, h)
	require.ErrorContains(t, got.err, `operator user "c" (test.txt:3), subtask 0 of 2: panic: no`)
	h = hooks{operators: map[string]func() Operator{"user": func() Operator { return nil }}}
	got = parseGraph(8, pipeline).run(t, context.Background(), 2, Env{}, h)
	require.ErrorContains(t, got.err, "returned nil")
}

// TestPartitionOutOfRange requires that the error about a shard that does not exist names the
// shard and the partition function.
func TestPartitionOutOfRange(t *testing.T) {
	h := hooks{partition: func(_ columnar.Batch, _ int, _ int64, shards int, dst []int32) error {
		for i := range dst {
			dst[i] = int32(shards)
		}
		return nil
	}}
	g := parseGraph(8, `
		a = source rows=100
		b = map a/custom`)
	got := g.run(t, context.Background(), 1, Env{}, h)
	require.EqualError(t, got.err, `operator map "b" (test.txt:2), subtask 0 of 1, shard 0: the partition function main.sevenfold main.go:12 sends row 0 of shard 0 to shard 8; want 0 to 7`)
}

// TestLifecycle requires that every operator that was opened is closed exactly once, and that no
// other operator is closed, however the run ends.
func TestLifecycle(t *testing.T) {
	for _, fail := range []string{"", "open", "process", "finish", "panic", "close"} {
		t.Run(fail, func(t *testing.T) {
			var mu sync.Mutex
			opened, closed := map[*funcOperator]int{}, map[*funcOperator]int{}
			h := hooks{operators: map[string]func() Operator{"user": func() Operator {
				f := &funcOperator{}
				count := func(m map[*funcOperator]int) { mu.Lock(); m[f]++; mu.Unlock() }
				check := func(at string) error {
					if fail == at {
						return errBoom
					}
					return nil
				}
				f.open = func(*Context) error { count(opened); return check("open") }
				f.process = func(_ *Context, _, s int, rows arrow.Record, out Output) error {
					if fail == "panic" {
						panic(errBoom)
					}
					if err := check("process"); err != nil {
						return err
					}
					return out.Emit(s, arrowrows.Batch(rows))
				}
				f.finish = func(*Context, Output) error { return check("finish") }
				f.close = func() error { count(closed); return check("close") }
				return f
			}}}
			got := parseGraph(8, `
				a = source rows=50
				b = user a
				c = user b
				d = user b
				e = user c/hash`).run(t, context.Background(), 3, Env{}, h)
			if fail == "" {
				require.NoError(t, got.err)
				require.Len(t, opened, 12)
			} else {
				require.ErrorIs(t, got.err, errBoom)
			}
			require.Equal(t, opened, closed)
			for _, n := range closed {
				require.Equal(t, 1, n)
			}
		})
	}
}

// TestCancel requires that Run returns the cause of the context if the context ends.
func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	stop := errors.New("the user pressed a key")
	op := funcOperator{process: func(c *Context, _, s int, rows arrow.Record, out Output) error {
		cancel(stop)
		<-c.Done()
		return fmt.Errorf("interrupted: %w", c.Err())
	}}
	got := parseGraph(8, pipeline).run(t, ctx, 3, Env{BatchRows: 7}, with(op))
	require.Equal(t, stop, got.err)

	got = parseGraph(8, pipeline).run(t, ctx, 3, Env{}, with(funcOperator{}))
	require.Equal(t, stop, got.err, "Run with a context that has ended must return its cause")
}

// TestAbandoned requires that Run returns even if a function ignores the end of the run, and
// that the error names the function.
func TestAbandoned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release, there := make(chan struct{}), make(chan struct{})
		op := funcOperator{open: func(c *Context) error {
			if c.Subtask == 1 {
				close(there)
				<-release
				return nil
			}
			<-there
			return errBoom
		}}
		began := time.Now()
		got := parseGraph(8, pipeline).run(t, context.Background(), 2, Env{AbandonAfter: 10 * time.Second}, with(op))
		var ae *AbandonedError
		require.ErrorAs(t, got.err, &ae)
		require.Equal(t, []string{`operator user "c" (test.txt:3), subtask 1 of 2`}, ae.Functions)
		require.ErrorIs(t, got.err, errBoom)
		require.Equal(t, 10*time.Second, time.Since(began))
		close(release)
		synctest.Wait()
	})
}

// TestBlockedButWatching requires that functions that are blocked but watch the context are not
// abandoned.
func TestBlockedButWatching(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		op := funcOperator{open: func(c *Context) error {
			if c.Subtask == 0 {
				time.Sleep(time.Minute)
				return errBoom
			}
			<-c.Done()
			return c.Err()
		}}
		got := parseGraph(8, pipeline).run(t, context.Background(), 4, Env{}, with(op))
		require.EqualError(t, got.err, `operator user "c" (test.txt:3), subtask 0 of 4: boom`)
	})
}

// TestDiamond requires that broadcasts and unions of datasets with a common ancestor do not
// deadlock, even with a single credit. synctest fails the test when all goroutines wait.
func TestDiamond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := parseGraph(16, `
			a = source rows=600
			b = map a/hash
			c = filter a/rebalance
			d = union a b/custom c/range a
			e = addside d b/side a/side
			f = addside a e/side
			g = union f/hash e/hash
			h = tap g
			i = tap d/rebalance`)
		for _, p := range []int{1, 4} {
			got := g.run(t, context.Background(), p, Env{BatchRows: 1, Credits: 1}, hooks{})
			require.NoError(t, got.err)
			require.Equal(t, g.reference(), got.taps)
		}
	})
}

// TestBindings requires that Run refuses bindings that do not match the plan.
func TestBindings(t *testing.T) {
	g := parseGraph(4, `
		a = source rows=10
		b = map a/custom
		c = tap b`)
	for name, test := range map[string]struct {
		spoil func(b *Bindings)
		want  string
	}{
		"missing source":    {func(b *Bindings) { delete(b.Sources, 0) }, `node 0, operator source "a" (test.txt:1): want exactly one of a source and an operator, have neither`},
		"both":              {func(b *Bindings) { b.Operators[0] = func() Operator { return nil } }, "have both"},
		"missing partition": {func(b *Bindings) { b.Partitions = nil }, "input 0 is partitioned by custom, and no partition function is bound"},
		"extra partition":   {func(b *Bindings) { b.Partitions[Port{9, 1}] = sevenfold }, "a partition function is bound to input 1 of node 9, which is no exchange"},
		"extra operator":    {func(b *Bindings) { b.Operators[17] = func() Operator { return nil } }, "an operator is bound to node 17"},
		"extra loop":        {func(b *Bindings) { b.Loops = map[string]OpenLoops{"q": (&testGang{}).open} }, `a loop is bound to queue "q", which is not in the plan`},
		"no sink":           {func(b *Bindings) { b.Sinks[1] = &testSink{} }, `node 1, operator map "b" (test.txt:2): a sink is bound, and the node is not a sink`},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := plan.Compile(g.Graph, 2)
			require.NoError(t, err)
			b := g.bindings(hooks{})
			test.spoil(&b)
			_, err = Run(context.Background(), p, g.Graph, b, Env{SpillDir: t.TempDir()})
			require.ErrorContains(t, err, test.want)
		})
	}
	p, err := plan.Compile(g.Graph, 2)
	require.NoError(t, err)
	other := parseGraph(4, `a = source rows=11`)
	_, err = Run(context.Background(), p, other.Graph, g.bindings(hooks{}), Env{})
	require.ErrorContains(t, err, "was compiled from another graph")
}

// testSink logs the calls of its methods.
type testSink struct {
	name string
	log  *[]string
	fail string
}

func (s *testSink) do(step string) error {
	*s.log = append(*s.log, s.name+" "+step)
	if s.fail == step {
		return errBoom
	}
	return nil
}

func (s *testSink) Begin() error  { return s.do("begin") }
func (s *testSink) Commit() error { return s.do("commit") }
func (s *testSink) Abort() error  { return s.do("abort") }

// TestSinks requires that sinks begin and commit once, in node order, and that they are aborted
// if the run fails.
func TestSinks(t *testing.T) {
	g := parseGraph(4, `
		a = source rows=10
		b = user a
		c = tap b
		d = tap a
		e = tap a/hash`)
	for name, test := range map[string]struct {
		fail map[string]string
		op   error
		want []string
	}{
		"success":      {nil, nil, []string{"c begin", "d begin", "e begin", "c commit", "d commit", "e commit"}},
		"begin fails":  {map[string]string{"d": "begin"}, nil, []string{"c begin", "d begin", "c abort"}},
		"run fails":    {nil, errBoom, []string{"c begin", "d begin", "e begin", "e abort", "d abort", "c abort"}},
		"commit fails": {map[string]string{"d": "commit"}, nil, []string{"c begin", "d begin", "e begin", "c commit", "d commit", "e abort", "d abort"}},
		"abort fails":  {map[string]string{"c": "abort"}, errBoom, []string{"c begin", "d begin", "e begin", "e abort", "d abort", "c abort"}},
	} {
		t.Run(name, func(t *testing.T) {
			var log []string
			h := with(funcOperator{open: func(*Context) error { return test.op }})
			h.sinks = map[string]Sink{}
			for _, n := range []string{"c", "d", "e"} {
				h.sinks[n] = &testSink{n, &log, test.fail[n]}
			}
			got := g.run(t, context.Background(), 2, Env{}, h)
			require.Equal(t, test.want, log)
			if name == "success" {
				require.NoError(t, got.err)
				return
			}
			require.ErrorIs(t, got.err, errBoom)
			require.Nil(t, got.report)
			var failed *CommitError
			if require.Equal(t, name == "commit fails", errors.As(got.err, &failed)); failed != nil {
				require.Equal(t, `of its outputs these are visible: tap "c" (test.txt:3); `+
					`of its outputs it is not known whether these are visible: tap "d" (test.txt:4); no other one is`, failed.Outputs())
			}
		})
	}
}
