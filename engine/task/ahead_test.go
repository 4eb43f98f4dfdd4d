package task

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// lendingLoop is a keepingLoop that lends its rows, and fails in a superstep after it has called during. It calls closed
// when it is closed.
type lendingLoop struct {
	*keepingLoop
	during, closed func(subtask int)
}

func (b *lendingLoop) Close() error {
	err := b.keepingLoop.Close()
	if b.context != nil && b.closed != nil {
		b.closed(b.context.Subtask)
	}
	return err
}

func (b *lendingLoop) Open(c *Context, in Input, comm *collective.Comm) error {
	err := b.keepingLoop.Open(c, in, comm)
	for shard, rows := range b.records {
		if b.spec.Lend != nil && err == nil {
			b.spec.Lend(0, shard, KeptRows{Rows: arrowrows.Batch(rows)})
		}
	}
	return err
}

// lending returns an OpenLoops of lendingLoops that call during in superstep 2, which then fails. If closed is not nil,
// they keep nothing, and release their rows before they call it.
func lending(shards int, during, closed func(subtask int)) OpenLoops {
	return func(s GangSpec) (loops []Loop, err error) {
		if closed != nil {
			s.Retain = nil
		}
		all, err := keeping(shards, 2, nil)(s)
		for _, loop := range all {
			own := &lendingLoop{loop.(*keepingLoop), during, closed}
			stages := own.testLoop.stages
			own.testLoop.stages = func(b *testLoop) []Stage {
				all := stages(b)
				run := all[0].Run
				all[0].Run = func() error {
					if b.steps == 2 {
						own.during(b.context.Subtask)
					}
					return run()
				}
				return all
			}
			loops = append(loops, own)
		}
		return loops, err
	}
}

// copyAhead copies a shard from one process to another.
func copyAhead(from, to *Retained, queue string, shard int) error {
	sizes, ports, bytes := from.Offer(queue, shard), make(map[int]columnar.Batch), int64(0)
	if sizes == nil {
		return errNotLent
	}
	for _, size := range sizes {
		bytes += size.Bytes
	}
	if !to.RoomAhead(bytes) {
		return errNoRoomAhead
	}
	for _, size := range sizes {
		err := from.Give(queue, size.Port, shard, func(rows columnar.Batch) error {
			rows.Retain()
			ports[size.Port] = rows
			return nil
		})
		if err != nil {
			for _, rows := range ports {
				rows.Release()
			}
			to.LeaveAhead(bytes)
			return err
		}
	}
	return to.AddAhead(queue, shard, ports, bytes)
}

var errNoRoomAhead = errors.New("no room")

// TestRowsTakenAhead requires that rows which a process has taken while a queue ran are there in the next run: none
// moves, none is made again, and the results are whole. All shards change their owners.
func TestRowsTakenAhead(t *testing.T) {
	const shards = 16
	k := newKeptRuns(t, shards, 3)
	require.Nil(t, k.kept[0].Offer("q", 0), "nothing runs")
	got := k.run(inMemory(), 2, 2, lending(shards, func(subtask int) {
		for shard := range shards {
			if sharding.Owner(shards, 2, shard) == subtask {
				require.NoError(t, copyAhead(k.kept[subtask], k.kept[1-subtask], "q", shard))
			} else {
				require.Nil(t, k.kept[subtask].Offer("q", shard), "the shard is in the other process")
			}
		}
		require.Nil(t, k.kept[subtask].Offer("q", shards))
		require.Nil(t, k.kept[subtask].Offer("another", 0))
	}, nil))
	require.ErrorIs(t, got.err, errEndsHere)
	for i := range 2 {
		held, err := k.kept[i].Held(1 << 20)
		require.NoError(t, err)
		h, err := holdings.Decode(held)
		require.NoError(t, err)
		require.Equal(t, []heldRows{{"q", []sharding.Range{{Lo: 0, Hi: shards}}}}, h.Rows, "its own and those of the other")
		require.Nil(t, k.kept[i].Offer("q", 0), "nothing is lent after the run")
		require.ErrorIs(t, k.kept[i].Give("q", 0, 0, func(columnar.Batch) error { return nil }), errNotLent)
		require.False(t, k.kept[i].RoomAhead(1), "nothing is taken after the run")
		require.False(t, k.kept[i].HasAhead("q", 0))
	}
	slices.Reverse(k.kept[:2])
	net := inMemory()
	got = k.run(net, 2, 2, keeping(shards, 0, nil))
	require.Empty(t, k.made)
	for _, part := range net.parts {
		require.Equal(t, slices.Repeat([]int{-1}, shards), part.run.continued.from["q"], "no shard moves")
	}
	k.requireWhole(got, 2)
}

// TestRowsAheadAreChecked requires that a process adds only whole shards of its queues, with the declared columns, and
// that it gives up what it has reserved otherwise.
func TestRowsAheadAreChecked(t *testing.T) {
	const shards = 16
	k := newKeptRuns(t, shards, 2)
	rows := func(n int) arrow.Record { return makeRows(k.mem, sourceRows(n, 1, 0)) }
	ports := func(port int, r arrow.Record) map[int]columnar.Batch {
		return map[int]columnar.Batch{port: arrowrows.Batch(r)}
	}
	require.ErrorContains(t, k.kept[0].AddAhead("q", 0, ports(0, rows(1)), 0), "the run has not begun")
	var once sync.Once
	got := k.run(inMemory(), 2, 2, lending(shards, func(int) {
		once.Do(func() {
			a := k.kept[0]
			add := func(queue string, shard int, p map[int]columnar.Batch, reserved int64) error {
				require.True(t, a.RoomAhead(reserved))
				return a.AddAhead(queue, shard, p, reserved)
			}
			size := func(r arrow.Record) int64 { return batch.Size(r) }
			require.ErrorContains(t, add("another", 9, ports(0, rows(3)), 1000), `queue "another"`)
			require.ErrorContains(t, add("q", shards, ports(0, rows(3)), 1000), "there is no shard 16")
			require.ErrorContains(t, add("q", -1, ports(0, rows(3)), 1000), "there is no shard -1")
			require.ErrorContains(t, add("q", 9, nil, 1000), "of 0 data inputs")
			require.ErrorContains(t, add("q", 9, ports(1, rows(3)), 1000), "lacks the rows of input 0")
			r := rows(3)
			require.ErrorContains(t, add("q", 9, ports(0, r), size(r)-1), "were announced")
			require.NoError(t, add("q", 9, ports(0, rows(3)), 1000))
			require.ErrorContains(t, add("q", 9, ports(0, rows(3)), 1000), "is here already")
			require.True(t, a.HasAhead("q", 9))
			require.Equal(t, size(rowsFreed(k, 3)), a.ahead.bytes)
			a.DropAhead(func(_ string, shard int) bool { return shard != 9 })
			require.False(t, a.HasAhead("q", 9))
			require.Zero(t, a.ahead.bytes)
			require.Zero(t, a.ahead.budget.ahead.Load())
			require.False(t, a.RoomAhead(-1))
		})
	}, nil))
	require.ErrorIs(t, got.err, errEndsHere)
	require.ErrorContains(t, k.kept[0].AddAhead("q", 0, ports(0, rows(1)), 0), "the run has not begun")
}

// rowsFreed returns rows whose memory is not checked.
func rowsFreed(*keptRuns, int) arrow.Record {
	return makeRows(memory.NewGoAllocator(), sourceRows(3, 1, 0))
}

// TestRowsAheadOfFreshProcess requires that a process without subtasks takes at most what it may, and holds it when it
// leaves the run.
func TestRowsAheadOfFreshProcess(t *testing.T) {
	const shards = 16
	k := newKeptRuns(t, shards, 2)
	compiled, err := plan.Compile(k.g.Graph, 1)
	require.NoError(t, err)
	fresh := k.kept[1]
	slots := []sharding.Range{{Lo: 0, Hi: compiled.Slots}, {Lo: compiled.Slots, Hi: compiled.Slots}}
	net := inMemory()
	network, err := net.network(1)
	require.NoError(t, err)
	w, err := NewWorker(compiled, k.g.Graph, k.g.bindings(hooks{loops: map[string]OpenLoops{"q": keeping(shards, 0, nil)}}), Env{SpillDir: t.TempDir(), Allocator: k.mem, Retained: fresh, MemoryBudget: 1 << 20, MemoryAhead: 10_000, Network: network}, Part{Worker: 1, Slots: slots, Join: func(context.Context, string, [][]int) (Group, error) { return nil, errEndsHere }})
	require.NoError(t, err)
	require.True(t, fresh.RoomAhead(10_000))
	require.False(t, fresh.RoomAhead(1))
	fresh.LeaveAhead(10_000)
	taken := 0
	got := k.run(inMemory(), 1, 1, lending(shards, func(int) {
		for shard := range shards {
			switch err := copyAhead(k.kept[0], fresh, "q", shard); {
			case err == nil:
				taken++
			case !errors.Is(err, errNoRoomAhead):
				require.NoError(t, err)
			}
		}
	}, nil))
	require.ErrorIs(t, got.err, errEndsHere)
	require.Positive(t, taken)
	require.LessOrEqual(t, fresh.ahead.bytes, int64(10_000))
	held, err := fresh.Held(1 << 20)
	require.NoError(t, err)
	require.Nil(t, held, "rows are taken still")
	fresh.KeepAhead()
	w.Close()
	require.Len(t, fresh.rows["q"], taken)
	for shard := range shards {
		require.Equal(t, shard < taken, fresh.HasAhead("q", shard))
	}
	slices.Reverse(k.kept)
	k.givers = 1
	got = k.run(inMemory(), 1, 1, keeping(shards, 0, nil))
	require.Empty(t, k.made)
	k.requireWhole(got, 1)
}

// TestGivingWhileQueuesEnd requires that rows which are given when their queue ends are whole or an error, and that no
// memory is used after it was released. The race detector and the checked memory watch.
func TestGivingWhileQueuesEnd(t *testing.T) {
	for range testsize.Of(20, 300) {
		const shards = 16
		k := newKeptRuns(t, shards, 2)
		var giving sync.WaitGroup
		got := k.run(inMemory(), 2, 2, lending(shards, func(subtask int) {
			for shard := range shards {
				giving.Go(func() {
					for {
						sum := 0
						err := k.kept[subtask].Give("q", 0, shard, func(rows columnar.Batch) error {
							sum += len(readRows(arrowrows.Record(rows)))
							return nil
						})
						if err != nil {
							return // it was taken back
						}
						if sum != len(readRowsOf(k.kept[subtask], shard)) && k.kept[subtask].Offer("q", shard) != nil {
							t.Errorf("%d rows of shard %d", sum, shard)
						}
					}
				})
			}
		}, func(subtask int) {
			for shard := range shards {
				if sizes := k.kept[subtask].Offer("q", shard); sizes != nil {
					t.Errorf("shard %d is lent after its loop was closed: %v", shard, sizes)
				}
			}
		}))
		giving.Wait()
		require.ErrorIs(t, got.err, errEndsHere)
	}
}

// readRowsOf returns the rows of a shard that are lent, or nil.
func readRowsOf(k *Retained, shard int) (all []row) {
	rows, _, err := k.borrowLent("q", 0, shard)
	if err != nil {
		return nil
	}
	defer rows.batch.Release()
	return readRows(rows.batch)
}

// TestBudgetOfRowsAhead requires that rows of the next run take only what is free, leave an eighth to what others hold,
// make rows spill, and give way to memory that cannot be spilled.
func TestBudgetOfRowsAhead(t *testing.T) {
	b := NewBudget("the run", 8000, nil)
	slot := NewBudget("slot 0", 8000, b)
	var beside int64
	b.Beside(func() int64 { return beside })
	held := int64(0)
	b.aheadYields = func(most int64) {
		b.GiveUpAhead(held - min(held, most))
		held = min(held, most)
	}
	hold := func(n int64) bool {
		ok := b.HoldAhead(n)
		if ok {
			held += n
		}
		return ok
	}
	require.False(t, hold(7001))
	require.True(t, hold(3000))
	require.True(t, slot.TryReserve(2000))
	require.False(t, slot.TryReserve(3001), "rows spill")
	require.True(t, b.RoomBeside(1000), "an eighth is left in any case")
	require.False(t, hold(2001))
	beside = 2500
	require.False(t, hold(501))
	require.True(t, hold(500))
	require.NoError(t, slot.Reserve(4000))
	require.Zero(t, held, "6000 are used, and 2500 beside them")
	slot.Release(4000)
	beside = 0
	require.True(t, hold(5000))
	slot.Take(1500)
	require.EqualValues(t, 4500, held)
	b.GiveUpAhead(held)
	slot.Release(3500)
	require.Zero(t, b.Used())
	require.Zero(t, b.ahead.Load())
}

// TestAheadFor compares what a process is to take with its definition.
func TestAheadFor(t *testing.T) {
	for seed := range testsize.Of(300, 20_000) {
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		shards := 1 << r.IntN(6)
		p, next := 1+r.IntN(min(shards, 6)), 1+r.IntN(min(shards, 6))
		compiled, err := plan.Compile(queueGraph(shards, 3, false, plan.Compute).Graph, p)
		require.NoError(t, err)
		after, err := plan.Compile(queueGraph(shards, 3, false, plan.Compute).Graph, next)
		require.NoError(t, err)
		part := &Part{Slots: split(compiled, 1+r.IntN(p))}
		hosts := part.hosts()
		lo := r.IntN(next)
		have := sharding.Range{Lo: lo, Hi: lo + 1 + r.IntN(next-lo)}
		worker := r.IntN(p + 2)
		want := make(map[int]int) // worker that has each shard that is lacking
		_, v := queueInputs(after, "q")
		for shard := range shards {
			if from := hosts[sharding.Owner(shards, p, shard)]; from != worker && have.Contains(sharding.Owner(shards, v.Parallelism, shard)) {
				want[shard] = from
			}
		}
		got := make(map[int]int)
		for _, a := range part.AheadFor(compiled, next, worker, have) {
			require.Equal(t, "q", a.Queue)
			require.True(t, slices.IsSorted(a.Shards))
			for _, shard := range a.Shards {
				require.NotContains(t, got, shard)
				got[shard] = a.From
			}
		}
		require.Equal(t, want, got, "seed %d", seed)
	}
}
