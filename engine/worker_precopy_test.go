package engine_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// stepGate is a Gate at a superstep.
type stepGate struct {
	at      int
	entered chan struct{}
	once    sync.Once
	passes  chan struct{}
	opened  chan struct{}
}

func newStepGate(at int) *stepGate {
	return &stepGate{at: at, entered: make(chan struct{}), passes: make(chan struct{}), opened: make(chan struct{})}
}

func (g *stepGate) Entered() { <-g.entered }
func (g *stepGate) Open()    { close(g.opened) }

func (g *stepGate) Pass(done <-chan struct{}) bool {
	select {
	case g.passes <- struct{}{}:
		return true
	case <-done:
		return false
	}
}

// wait is called in a superstep.
func (g *stepGate) wait(ctx context.Context, step int) error {
	if step < g.at {
		return nil
	}
	g.once.Do(func() { close(g.entered) })
	select {
	case <-g.passes:
	case <-g.opened:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// movedJob is a job with a queue over rows that an operator makes.
type movedJob struct {
	*engine.Job[struct{}]
	gate *stepGate
	made atomic.Int64 // rows that the operator has made
}

func newMovedJob(supersteps int, shuffled bool) *movedJob {
	j := &movedJob{gate: newStepGate(5)}
	data, others := comqueue.PartitionedRows("rows"), comqueue.PartitionedRows("others")
	sums := shared.Replicated("sums", shared.Float64s())
	seen := shared.PerShard("seen", shared.Float64s())
	j.Job = engine.Define("moved", func(b *engine.Builder, _ struct{}) error {
		drawn := operators.Generate(b, 3000, func(draws sharding.Random, i int64) []float64 {
			return []float64{draws.NormFloat64(), draws.Float64(), float64(i)}
		})
		points := operators.Map(drawn, func(v []float64) point {
			j.made.Add(1)
			return point{v}
		})
		firsts := operators.Map(drawn, func(v []float64) point {
			j.made.Add(1)
			return point{v[:1]}
		})
		if shuffled {
			points = operators.Rebalance(points)
		}
		closed := comqueue.New(b, "moved").
			InitWithPartitionedData(data, points).
			InitWithPartitionedData(others, firsts).
			Begin(func(ctx *comqueue.ComContext) error {
				sums.Put(ctx, make([]float64, 3))
				for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
					seen.Put(ctx, shard, []float64{float64(shard)})
				}
				return nil
			}).
			Add(comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []float64) error {
				rows, err := comqueue.NewRowReader[point](data.Get(ctx, shard))
				if err != nil {
					return err
				}
				var row point
				own := seen.Get(ctx, shard)
				for i := range rows.Len() {
					if err := rows.Read(i, &row); err != nil {
						return err
					}
					for k, v := range row.At {
						out[k] += v / float64(ctx.StepNo()+i)
					}
				}
				own[0] = own[0]/2 + out[0]*float64(others.Get(ctx, shard).Rows()) + others.Get(ctx, shard).Matrix("at").Row(0)[0]
				return nil
			})).
			Add(comqueue.AllReduce(sums)).
			Do(func(ctx *comqueue.ComContext) error {
				if ctx.TaskID() == 0 {
					return j.gate.wait(ctx.Context(), ctx.StepNo())
				}
				return nil
			}).
			SetMaxIter(supersteps).
			CloseWith(comqueue.ShardOutput(func(ctx *comqueue.ComContext, shard int) ([]point, error) {
				return []point{{append([]float64{seen.Get(ctx, shard)[0]}, sums.Get(ctx)...)}}, nil
			})).
			Exec()
		engine.Collect(closed, "closed")
		return nil
	})
	return j
}

// undisturbed returns the result of the job in one process.
func undisturbed(t *testing.T, supersteps int, shuffled bool) string {
	j := newMovedJob(supersteps, shuffled)
	j.gate.Open()
	want, err := engine.Run(t.Context(), j.Job, struct{}{}, engine.Shards(16), engine.Parallelism(2))
	require.NoError(t, err)
	defer want.Release()
	return engine.ResultText(want)
}

// TestRowsAreCopiedAhead requires that the processes of the next attempt have all rows that they need when it begins:
// no row is sent over the edges of the plan, no operator makes a row again, and the result has the bits of an
// undisturbed run. Fresh processes, which were deployed and never started, are kept for the next attempt.
func TestRowsAreCopiedAhead(t *testing.T) {
	for name, m := range map[string]engine.Move{
		"2 to 3":                       {Before: []int{1, 1, 0}, After: []int{1, 1, 1}},
		"3 to 2":                       {Before: []int{1, 1, 1}, After: []int{1, 1, 0}},
		"1 to 2":                       {Before: []int{1, 0}, After: []int{1, 1}},
		"another process":              {Before: []int{1, 1, 0}, After: []int{1, 0, 1}, OrderNow: []int{0, 2, 1}},
		"another worker 0":             {Before: []int{1, 2, 0}, After: []int{0, 2, 2}, OrderNow: []int{2, 1, 0}},
		"two others, of several slots": {Before: []int{2, 2, 0, 0}, After: []int{0, 0, 1, 2}, OrderNow: []int{2, 3, 0, 1}},
		"the same, in another order":   {Before: []int{1, 1}, After: []int{1, 1}, OrderNow: []int{1, 0}},
	} {
		for _, shuffled := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", shuffled ", shuffled), func(t *testing.T) {
				j := newMovedJob(400, shuffled)
				m.Gate = j.gate
				got := engine.RunMoved(t, j.Job, struct{}{}, m)
				defer got.Result.Release()
				require.Equal(t, undisturbed(t, 400, shuffled), engine.ResultText(got.Result))
				require.EqualValues(t, 6000, j.made.Load(), "each row is made once: %s", got.Log)
				require.Zero(t, got.Bytes, got.Log)
				require.Contains(t, got.Log, "rows were copied ahead of the next attempt")
				require.NotContains(t, got.Log, "not copied")
			})
		}
	}
}

// TestRowsMoveAsBefore requires that the state is saved and the next attempt has the bits of an undisturbed run whatever
// prevents rows from being copied ahead: they move when it begins, and none is made again.
func TestRowsMoveAsBefore(t *testing.T) {
	for _, c := range []struct {
		name    string
		request func(p *wire.Precopy)
		memory  int64 // of the fresh process; 0 means enough
		log     string
		perSlot int64 // memory that the user gives each slot; 0 if the user does not say it
	}{
		{"no time", func(p *wire.Precopy) { p.Within = 1 }, 0, "the time for it is over", 0},
		{"no room", nil, 2, "the memory budget has no room for it", 0},
		{"no room in a slot", nil, 0, "the memory budget has no room for it", 4 << 10},
		{"nobody is there", func(p *wire.Precopy) { p.To[2].Address = "127.0.0.1:1" }, 0, "connection refused", 0},
		{"another process is there", func(p *wire.Precopy) { p.To[2].Worker = 5 }, 0, "this is worker 2, not 5", 0},
		{"no slots", func(p *wire.Precopy) { p.Of = 0 }, 0, "the request is for 0 slots", 0},
		{"more slots than shards", func(p *wire.Precopy) { p.Of = 17 }, 0, "the request is for 17 slots", 0},
		{"no such slots", func(p *wire.Precopy) { p.To[2].Slots.Hi = 9 }, 0, "the slots 2 to 8 of 3", 0},
		{"no address", func(p *wire.Precopy) { p.To[2].Address = "" }, 0, "gives worker 2 no address", 0},
		{"twice", func(p *wire.Precopy) { p.To[1].Worker = 0 }, 0, "names worker 0 twice", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newMovedJob(400, false)
			got := engine.RunMoved(t, j.Job, struct{}{}, engine.Move{
				Before: []int{1, 1, 0}, After: []int{1, 1, 1}, Gate: j.gate, Request: c.request,
				Change: func(process int, d *wire.Deployment) {
					if process == 2 && c.memory > 0 {
						d.Memory = c.memory
					}
					if process == 2 {
						d.Spec.Run.Memory = c.perSlot
					}
				},
			})
			defer got.Result.Release()
			require.Equal(t, undisturbed(t, 400, false), engine.ResultText(got.Result))
			require.EqualValues(t, 6000, j.made.Load(), "each row is made once")
			require.Positive(t, got.Bytes)
			require.Contains(t, got.Log, c.log)
		})
	}
}

// TestRowsInFilesAreCopiedAhead requires that rows which a process has moved to files are copied too.
func TestRowsInFilesAreCopiedAhead(t *testing.T) {
	j := newMovedJob(400, false)
	got := engine.RunMoved(t, j.Job, struct{}{}, engine.Move{
		Before: []int{1, 0}, After: []int{0, 1}, OrderNow: []int{1, 0}, Gate: j.gate,
		Change: func(process int, d *wire.Deployment) {
			if process == 0 {
				d.Memory = 48 << 10
			}
		},
	})
	defer got.Result.Release()
	require.Contains(t, got.Log, "keeping rows of the queue in files")
	require.Equal(t, undisturbed(t, 400, false), engine.ResultText(got.Result))
	require.EqualValues(t, 6000, j.made.Load(), "each row is made once")
	require.Zero(t, got.Bytes, got.Log)
}

// TestAttemptEndsWhileRowsAreCopied requires that a worker whose attempt ends does not wait for a process that is
// silent, and is kept.
func TestAttemptEndsWhileRowsAreCopied(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	j := newMovedJob(400, false)
	defer j.gate.Open()
	engine.EndWhileCopying(t, j.Job, struct{}{}, j.gate, silent)
}
