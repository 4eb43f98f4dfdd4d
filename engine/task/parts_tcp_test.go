package task

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/overdue"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/internal/transport/remote"
)

// joinTCP returns a function that returns the Join of a worker. Join connects ranks over TCP, as
// separate processes do.
func joinTCP(dir string) func(worker int) joinFunc {
	return func(worker int) joinFunc {
		return func(ctx context.Context, queue string, ranks [][]int) (Group, error) {
			size := 0
			for _, r := range ranks {
				size += len(r)
			}
			g, err := collective.NewTCPGroup(ctx, ranks[worker][0], collective.TCPConfig{
				Store: collective.FileStore(dir), Size: size, Hosts: ranks, Group: queue,
			})
			if err != nil {
				return nil, err
			}
			return g, nil
		}
	}
}

// overTCP returns a partsRun whose workers connect over TCP, as separate processes do.
func overTCP(t testing.TB, workers int) *partsRun {
	all, addresses := make([]*remote.Network, workers), make([]string, workers)
	for w := range all {
		port, err := peerlink.Listen(peerlink.Config{Job: "test", Secret: []byte("0123456789abcdef")})
		require.NoError(t, err)
		t.Cleanup(func() { port.Close() })
		all[w], err = remote.New(remote.Config{Worker: w, Workers: workers, Attempt: 1, Port: port})
		require.NoError(t, err)
		addresses[w] = all[w].Address()
	}
	for _, n := range all {
		require.NoError(t, n.Connect(addresses))
	}
	return &partsRun{
		join:    joinTCP(t.TempDir()),
		network: func(worker int) (transport.Network, error) { return all[worker], nil },
	}
}

// runOverTCP is like testGraph.runParts, with workers that connect over TCP.
func (g *testGraph) runOverTCP(t testing.TB, ctx context.Context, p, workers int, env Env, h func(worker int) hooks) result {
	compiled, err := plan.Compile(g.Graph, p)
	require.NoError(t, err)
	taps := &taps{}
	env.SpillDir, env.Collector = t.TempDir(), taps
	defer overdue.Watch("a run of several workers over TCP to end")()
	report, err := overTCP(t, workers).runParts(ctx, compiled, g.Graph, split(compiled, workers), func(worker int) (Bindings, Env, error) {
		return g.bindings(h(worker)), env, nil
	})
	return result{taps: taps.rows, report: report, err: err}
}

// TestPartsOverTCP requires that exchanges over TCP, with all partitioners and a broadcast, give
// the rows of the reference and the report of a run in one part.
func TestPartsOverTCP(t *testing.T) {
	g := parseGraph(16, `
		a = source rows=900
		b = source rows=40
		c = union a/hash b/rebalance
		d = addside c/range b/side
		e = number d/custom
		f = last e single=1
		g = tap e/hash
		h = tap f`)
	local := g.run(t, context.Background(), 5, Env{BatchRows: 7}, hooks{})
	require.NoError(t, local.err)
	for _, workers := range []int{1, 2, 5} {
		got := g.runOverTCP(t, context.Background(), 5, workers, Env{BatchRows: 7}, noHooks)
		require.NoError(t, got.err)
		require.Equal(t, g.reference(), got.taps)
		sameReport(t, local.report, got.report)
	}
}

// summing returns a gang whose stage sums 8 numbers over the subtasks.
func summing(stop int, fail func(subtask, step int) error) *testGang {
	return &testGang{loop: func(subtask int) *testLoop {
		mine, out := make([]float64, 8), make([]float64, 8)
		for i := range mine {
			mine[i] = math.Pow(10, float64(3*subtask)) / 3
		}
		return &testLoop{
			stop: func(step int) (bool, error) { return step == stop, nil },
			stages: func(b *testLoop) []Stage {
				sum := &collective.Reduction[float64]{Name: "sum", Op: collective.Sum[float64](), Whole: mine, Out: out}
				return []Stage{{Node: 3, Run: func() error {
					if fail != nil {
						if err := fail(subtask, b.steps); err != nil {
							return err
						}
					}
					sum.Context = b.context
					if err := collective.AllReduce(b.comm, sum); err != nil {
						return err
					}
					b.context.Report("sum", b.steps, out[7])
					return nil
				}}}
			},
		}
	}}
}

// TestQueuesOverTCP requires that a queue whose workers connect over TCP gives the rows and the
// report of a run in one part.
func TestQueuesOverTCP(t *testing.T) {
	for _, criterion := range []bool{true, false} {
		g := queueGraph(8, 30, criterion, plan.Compute)
		h := func(int) hooks { return queueHooks(summing(20, nil)) }
		local := g.run(t, context.Background(), 5, Env{}, h(0))
		require.NoError(t, local.err)
		for _, workers := range []int{2, 5} {
			got := g.runOverTCP(t, context.Background(), 5, workers, Env{}, h)
			require.NoError(t, got.err)
			require.Equal(t, local.taps, got.taps)
			sameReport(t, local.report, got.report)
		}
	}
}

// TestQueueFailsOverTCP requires that the error of the worker with the failed subtask names
// this subtask. FollowsPeer must be true of the error of the other worker, and only of that
// error.
func TestQueueFailsOverTCP(t *testing.T) {
	for _, subtask := range []int{0, 3} {
		g := queueGraph(8, 30, false, plan.Compute)
		fail := func(at, step int) error {
			if at == subtask && step == 4 {
				return errBoom
			}
			return nil
		}
		compiled, err := plan.Compile(g.Graph, 4)
		require.NoError(t, err)
		errs := map[int]error{}
		both := overTCP(t, 2)
		_, err = both.runParts(context.Background(), compiled, g.Graph, split(compiled, 2), func(worker int) (Bindings, Env, error) {
			return g.bindings(queueHooks(summing(0, fail))), Env{SpillDir: t.TempDir(), Collector: &taps{}}, nil
		})
		require.EqualError(t, err, fmt.Sprintf("operator compute (test.txt:4), subtask %d of 4: boom", subtask))
		for i, w := range both.parts {
			errs[i] = w.err
		}
		own := subtask / 2
		require.ErrorIs(t, errs[own], errBoom)
		require.False(t, FollowsPeer(errs[own]))
		require.Error(t, errs[1-own])
		require.True(t, FollowsPeer(errs[1-own]), "%v", errs[1-own])
	}
}

// BenchmarkSuperstepOverTCP measures a superstep that consists of an AllReduce of 8 numbers over
// 4 workers on TCP, and for comparison the AllReduce without a queue.
func BenchmarkSuperstepOverTCP(b *testing.B) {
	b.Run("AllReduce", func(b *testing.B) {
		join := joinTCP(b.TempDir())
		ranks := [][]int{{0}, {1}, {2}, {3}}
		var running sync.WaitGroup
		begin := make(chan struct{})
		var ready sync.WaitGroup
		ready.Add(4)
		for w := range 4 {
			running.Go(func() {
				g, err := join(w)(context.Background(), "alone", ranks)
				if err != nil {
					panic(err)
				}
				ready.Done()
				<-begin
				mine, out := make([]float64, 8), make([]float64, 8)
				for range b.N {
					err := collective.AllReduce(g.Rank(w), &collective.Reduction[float64]{Name: "sum", Op: collective.Sum[float64](), Whole: mine, Out: out})
					if err != nil {
						panic(err)
					}
				}
				g.Rank(w).Close(nil)
				if err := g.Close(); err != nil && !errors.Is(err, collective.ErrLeft) {
					panic(err)
				}
			})
		}
		ready.Wait()
		b.ResetTimer()
		close(begin)
		running.Wait()
	})
	for _, criterion := range []bool{false, true} {
		b.Run(fmt.Sprintf("criterion=%t", criterion), func(b *testing.B) {
			n := max(b.N, 100)
			g := queueGraph(8, n, criterion, plan.Compute)
			got := g.runOverTCP(b, context.Background(), 4, 4, Env{}, func(int) hooks { return queueHooks(summing(0, nil)) })
			if got.err != nil {
				b.Fatal(got.err)
			}
			each := got.report.Queues[0].Elapsed / time.Duration(n)
			b.ReportMetric(float64(each.Nanoseconds()), "ns/superstep")
		})
	}
}

// BenchmarkAllReduceBesideRows measures an AllReduce of 8 bytes between two workers. In the case
// rows=true one worker sends rows to the other at the same time, through the same ports and as
// fast as the other accepts them.
func BenchmarkAllReduceBesideRows(b *testing.B) {
	for _, beside := range []bool{false, true} {
		b.Run(fmt.Sprintf("rows=%t", beside), func(b *testing.B) {
			both := overTCP(b, 2)
			nets := make([]*remote.Network, 2)
			groups := make([]*collective.TCPGroup, 2)
			var ready, running sync.WaitGroup
			for w := range nets {
				n, err := both.network(w)
				require.NoError(b, err)
				nets[w] = n.(*remote.Network)
				ready.Go(func() {
					var err error
					groups[w], err = collective.NewTCPGroup(b.Context(), w, collective.TCPConfig{
						Port: nets[w].Port(), Leader: nets[0].Address(), Size: 2, Group: "beside",
					})
					if err != nil {
						panic(err)
					}
				})
			}
			ready.Wait()
			ctx, stop := context.WithCancel(context.Background())
			to := transport.Address{Edge: 1, Worker: 1}
			require.NoError(b, nets[1].Listen(to, dropped{}))
			if beside {
				s, err := nets[0].Dial(to)
				require.NoError(b, err)
				rows := numbers(64 << 10)
				defer rows.Release()
				running.Go(func() {
					for {
						rows.Retain()
						if s.Send(ctx, transport.Message{Rows: rows}) != nil {
							return
						}
					}
				})
			}
			reduce := func(w, times int) {
				x := []float64{1}
				for range times {
					if err := collective.AllReduce(groups[w].Rank(w), &collective.Reduction[float64]{Name: "x", Op: collective.Sum[float64](), Whole: x, Out: x}); err != nil {
						panic(err)
					}
				}
			}
			running.Go(func() { reduce(1, 20+b.N) })
			reduce(0, 20)
			b.ResetTimer()
			reduce(0, b.N)
			b.StopTimer()
			stop()
			running.Wait()
			for w, g := range groups {
				ready.Go(func() { g.Rank(w).Close(nil); g.Close() })
			}
			ready.Wait()
			for _, n := range nets {
				ready.Go(func() { n.Close() })
			}
			ready.Wait()
		})
	}
}

// dropped is a receiver that releases all rows.
type dropped struct{}

func (dropped) Receive(m transport.Message) { m.Release() }

// numbers returns n rows of one number.
func numbers(n int) arrow.Record {
	build := array.NewRecordBuilder(memory.NewGoAllocator(), arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float64}}, nil))
	defer build.Release()
	for i := range n {
		build.Field(0).(*array.Float64Builder).Append(float64(i))
	}
	return build.NewRecord()
}

// TestPeerFailedCrossesTheWire requires that FollowsPeer is true of a failure that a worker has
// passed to another worker, and that the failure keeps the text of its cause. This must hold
// whether the run passes the failure, or a rank whose context has ended.
func TestPeerFailedCrossesTheWire(t *testing.T) {
	failure := &TaskError{Operator: "Map", Subtask: 1, Parallelism: 2, Shard: 5, Err: errBoom}
	for want, leave := range map[string]func(*collective.Comm) error{
		"rank 1 ended: operator Map, subtask 1 of 2, shard 5: boom": func(c *collective.Comm) error {
			return peerFailed(1, failure)
		},
		"rank 1 was cancelled: operator Map, subtask 1 of 2, shard 5: boom": func(c *collective.Comm) error {
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(&endedBy{failure})
			return c.Barrier(ctx)
		},
	} {
		join, ranks := joinTCP(t.TempDir()), [][]int{{0}, {1}}
		var together sync.WaitGroup
		var got, own error
		for w := range 2 {
			together.Go(func() {
				g, err := join(w)(context.Background(), "q", ranks)
				if err != nil {
					t.Error(err)
					return
				}
				defer g.Close()
				if w == 1 {
					own = leave(g.Rank(1))
					g.Rank(1).Close(own)
					return
				}
				got = g.Rank(0).Barrier(context.Background())
				g.Rank(0).Close(got)
			})
		}
		together.Wait()
		require.ErrorIs(t, own, errBoom)
		require.True(t, FollowsPeer(got), "%v", got)
		require.ErrorContains(t, got, want)
	}
}
