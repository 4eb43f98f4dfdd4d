package comqueue_test

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

var parallelisms = testsize.Raced([]int{1, 2, 3, 8}, []int{1, 3})

// supersteps runs a queue of n supersteps of the stages, without data. Its p subtasks share 16
// shards.
func supersteps(t *testing.T, p, n int, stages ...comqueue.Stage) (*engine.Result, error) {
	t.Helper()
	return superstepsWith(t, p, n, true, stages...)
}

// superstepsWith does the same as supersteps, with the check of replicated objects enabled if
// checked is true.
func superstepsWith(t *testing.T, p, n int, checked bool, stages ...comqueue.Stage) (*engine.Result, error) {
	t.Helper()
	build := func(b *engine.Builder) *engine.Dataset {
		q := comqueue.New(b, "q").InitWithPartitionedData(data, dataset(b, 5, func(i int) float64 { return float64(i) }))
		for _, s := range stages {
			q.Add(s)
		}
		return q.CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(n).Exec()
	}
	_, result, err := run(t, build, engine.Parallelism(p), engine.Shards(16), engine.CheckBroadcasts(checked))
	return result, err
}

// do makes a stage from a function that returns no error.
func do(f func(ctx *comqueue.ComContext)) comqueue.Stage {
	return comqueue.Do(func(ctx *comqueue.ComContext) error { f(ctx); return nil })
}

// bits returns the bits of floats, so that NaNs and zeros of both signs can be compared.
func bits(x []float64) []uint64 {
	b := make([]uint64, len(x))
	for i, v := range x {
		b[i] = math.Float64bits(v)
	}
	return b
}

// odd returns values that incorrect copies or comparisons may change: NaNs with several
// payloads, zeros of both signs, infinities, subnormals and values of all magnitudes.
func odd(seed int) float64 {
	switch seed % 8 {
	case 0:
		return math.Float64frombits(0x7ff8000000000000 | uint64(seed))
	case 1:
		return math.Copysign(0, -1)
	case 2:
		return math.Inf(1 - seed%4)
	case 3:
		return math.Float64frombits(uint64(seed))
	}
	return math.Ldexp(float64(seed%101)-50, seed*37%100-50)
}

// lengthsOf has functions that return the number of elements that subtask r of p contributes in
// a superstep.
var lengthsOf = map[string]func(r, p, step int) int{
	"none":        func(int, int, int) int { return 0 },
	"one each":    func(int, int, int) int { return 1 },
	"by rank":     func(r, _, _ int) int { return r },
	"last alone":  func(r, p, _ int) int { return 3 * ((r + 1) / p) },
	"by step":     func(r, p, step int) int { return (r*7 + step*5) % 4 * (4 - step) },
	"many":        func(r, _, step int) int { return testsize.Raced(9000, 1000) + r*100 - step },
	"none or all": func(r, p, step int) int { return step % 2 * (r + 2) },
}

// brought returns the elements that subtask r contributes in a superstep.
func brought(r, step, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = odd(r*1000003 + step*101 + i)
	}
	return x
}

func TestGatheringConcatenatesInSubtaskOrder(t *testing.T) {
	from, scratch := shared.Scratch[[]float64]("from"), shared.Scratch[[]float64]("gathered")
	everywhere := shared.Replicated("everywhere", shared.Float64s())
	for name, length := range lengthsOf {
		for _, p := range parallelisms {
			root := p / 2
			fill := do(func(ctx *comqueue.ComContext) {
				from.Put(ctx, brought(ctx.TaskID(), ctx.StepNo(), length(ctx.TaskID(), p, ctx.StepNo())))
			})
			check := func(ctx *comqueue.ComContext) error {
				step := ctx.StepNo()
				var want []float64
				for r := range p {
					want = append(want, brought(r, step, length(r, p, step))...)
				}
				if got := everywhere.Get(ctx); !slices.Equal(bits(want), bits(got)) {
					return fmt.Errorf("all-gather: %d elements, want %d: %v", len(got), len(want), got)
				}
				if got, ok := scratch.Lookup(ctx); ok != (ctx.TaskID() == root) || ok && !slices.Equal(bits(want), bits(got)) {
					return fmt.Errorf("gather to %d: %t, %d elements, want %d: %v", root, ok, len(got), len(want), got)
				}
				if !slices.Equal(bits(from.Get(ctx)), bits(brought(ctx.TaskID(), step, length(ctx.TaskID(), p, step)))) {
					return fmt.Errorf("the buffer that the subtask contributed has changed")
				}
				return nil
			}
			_, err := supersteps(t, p, 4, fill, comqueue.AllGather(from, everywhere), comqueue.Gather(from, scratch, comqueue.Root(root)), comqueue.Do(check))
			require.NoError(t, err, "%s, parallelism %d", name, p)
			for _, by := range []string{"direct", "ring", "bruck"} {
				to := map[string]string{"direct": "linear", "ring": "binomial", "bruck": "binomial"}[by]
				_, err := supersteps(t, p, 4, fill, comqueue.AllGather(from, everywhere, comqueue.Algorithm(by)),
					comqueue.Gather(from, scratch, comqueue.Root(root), comqueue.Algorithm(to)), comqueue.Do(check))
				require.NoError(t, err, "%s by %s, parallelism %d", name, by, p)
			}
		}
	}
}

// moved checks that AllGather, Gather and Broadcast do not change elements of a type.
func moved[T comqueue.Element](t *testing.T, of func(i int) T) {
	t.Helper()
	from, all, node0 := shared.Scratch[[]T]("from"), shared.Scratch[[]T]("all"), shared.Scratch[[]T]("node 0")
	for _, p := range parallelisms {
		_, err := supersteps(t, p, 1,
			do(func(ctx *comqueue.ComContext) { from.Put(ctx, []T{of(2 * ctx.TaskID()), of(2*ctx.TaskID() + 1)}) }),
			comqueue.AllGather(from, all), comqueue.Gather(from, node0), comqueue.Broadcast(node0),
			comqueue.Do(func(ctx *comqueue.ComContext) error {
				for i, v := range all.Get(ctx) {
					if v != of(i) || v != node0.Get(ctx)[i] {
						return fmt.Errorf("element %d of %T is %v", i, v, v)
					}
				}
				if len(all.Get(ctx)) != 2*p || len(node0.Get(ctx)) != 2*p {
					return fmt.Errorf("%d and %d elements", len(all.Get(ctx)), len(node0.Get(ctx)))
				}
				return nil
			}))
		require.NoError(t, err)
	}
}

func TestElementsOfAllTypesMove(t *testing.T) {
	moved(t, func(i int) float64 { return math.Ldexp(-1, i) })
	moved(t, func(i int) float32 { return float32(math.Ldexp(-1, i)) })
	moved(t, func(i int) int64 { return math.MinInt64 + int64(i) })
	moved(t, func(i int) int32 { return math.MaxInt32 - int32(i) })
	moved(t, func(i int) uint8 { return uint8(255 - i) })
}

func TestBroadcastGivesTheRootsBuffer(t *testing.T) {
	key := shared.Replicated("buffer", shared.Float64s())
	for name, length := range lengthsOf {
		for _, p := range parallelisms {
			for root := range p {
				options := [][]comqueue.MoveOption{{comqueue.Root(root)}}
				if root == p-1 {
					for _, by := range []string{"binomial", "chain", "scatter-allgather"} {
						options = append(options, []comqueue.MoveOption{comqueue.Root(root), comqueue.Algorithm(by)})
					}
				}
				if root == 0 {
					options = append(options, nil)
				}
				for _, o := range options {
					_, err := supersteps(t, p, 4,
						do(func(ctx *comqueue.ComContext) {
							if ctx.TaskID() == root { // the other subtasks have a value of an earlier superstep or none
								key.Put(ctx, brought(7, ctx.StepNo(), length(7, 8, ctx.StepNo())))
							}
						}),
						comqueue.Broadcast(key, o...),
						comqueue.Do(func(ctx *comqueue.ComContext) error {
							if got := key.Get(ctx); !slices.Equal(bits(got), bits(brought(7, ctx.StepNo(), length(7, 8, ctx.StepNo())))) {
								return fmt.Errorf("subtask %d got %v", ctx.TaskID(), got)
							}
							return nil
						}))
					require.NoError(t, err, "%s, root %d of %d", name, root, p)
				}
			}
		}
	}
}

// TestCopiesAreTheSubtasksOwn requires that a subtask may modify a buffer that it received by
// Broadcast or AllGather without a change of other subtasks' buffers.
func TestCopiesAreTheSubtasksOwn(t *testing.T) {
	model, part, all := shared.Scratch[[]float64]("model"), shared.Scratch[[]float64]("part"), shared.Scratch[[]float64]("all")
	_, err := supersteps(t, 8, 50,
		do(func(ctx *comqueue.ComContext) {
			part.Put(ctx, []float64{float64(ctx.TaskID())})
			if ctx.TaskID() == 0 {
				model.Put(ctx, []float64{float64(ctx.StepNo())})
			}
		}),
		comqueue.Broadcast(model), comqueue.AllGather(part, all),
		do(func(ctx *comqueue.ComContext) {
			model.Get(ctx)[0] += float64(ctx.TaskID())
			for i := range all.Get(ctx) {
				all.Get(ctx)[i] += float64(100 * ctx.TaskID())
			}
		}),
		comqueue.Do(func(ctx *comqueue.ComContext) error {
			if got := model.Get(ctx)[0]; got != float64(ctx.StepNo()+ctx.TaskID()) {
				return fmt.Errorf("model is %v", got)
			}
			for i, v := range all.Get(ctx) {
				if v != float64(i+100*ctx.TaskID()) {
					return fmt.Errorf("element %d is %v", i, v)
				}
			}
			return nil
		}))
	require.NoError(t, err)
}

// TestResultsDoNotOverwriteWhatTheyAreMadeOf requires correct results if the buffers under from
// and into share memory.
func TestResultsDoNotOverwriteWhatTheyAreMadeOf(t *testing.T) {
	from, into := shared.Scratch[[]float64]("from"), shared.Scratch[[]float64]("into")
	for name, c := range map[string]struct {
		stage              comqueue.Stage
		fromLo, fromHi, to int // indices in a buffer of 9 elements
	}{
		"gather":         {comqueue.AllGather(from, into), 6, 9, 0},
		"scatter":        {comqueue.ReduceScatter(from, into), 0, 9, 3},
		"gather by ring": {comqueue.AllGather(from, into, comqueue.Algorithm("ring")), 6, 9, 0},
	} {
		_, err := supersteps(t, 3, 2,
			do(func(ctx *comqueue.ComContext) {
				buffer := make([]float64, 9)
				for i := range buffer {
					buffer[i] = float64(i + ctx.TaskID())
				}
				from.Put(ctx, buffer[c.fromLo:c.fromHi])
				into.Put(ctx, buffer[c.to:])
			}),
			c.stage,
			comqueue.Do(func(ctx *comqueue.ComContext) error {
				want := []float64{6, 7, 8, 7, 8, 9, 8, 9, 10}
				if name == "scatter" {
					first := float64(9*ctx.TaskID() + 3)
					want = []float64{first, first + 3, first + 6}
				}
				if got := into.Get(ctx); !slices.Equal(want, got) {
					return fmt.Errorf("got %v, want %v", got, want)
				}
				return nil
			}))
		require.NoError(t, err, name)
	}
}

// TestWaitingIsNotBusy requires that the time in which subtasks wait for a slow subtask does
// not count as busy time of the stage in which they wait. It runs in a bubble of synctest, in
// which time passes only while all goroutines sleep or wait.
func TestWaitingIsNotBusy(t *testing.T) {
	part, all, block := shared.Scratch[[]float64]("part"), shared.Scratch[[]float64]("all"), shared.Scratch[[]float64]("block")
	object := shared.Replicated("object", shared.String())
	vector, vectors := shared.Scratch[comqueue.SparseVector[float64]]("vector"), shared.PerShard("vectors", shared.Msgpack[comqueue.SparseVector[float64]]())
	for name, stage := range map[string]comqueue.Stage{
		"Barrier": comqueue.Barrier(), "AllGather": comqueue.AllGather(part, all), "Gather": comqueue.Gather(part, all),
		"Broadcast": comqueue.Broadcast(part), "ReduceScatter": comqueue.ReduceScatter(part, block),
		"ReduceScatter by ring": comqueue.ReduceScatter(part, block, comqueue.Algorithm("ring")),
		"AllReduce by ring":     comqueue.AllReduce(part, comqueue.Algorithm("ring")),
		"AllReduceObject":       comqueue.AllReduceObject(object, joined), "AllReduceShardSparse": comqueue.AllReduceShardSparse(vectors, vector),
	} {
		synctest.Test(t, func(t *testing.T) {
			result, err := superstepsWith(t, 3, 2, false,
				do(func(ctx *comqueue.ComContext) {
					part.Put(ctx, make([]float64, 3))
					object.Put(ctx, "x")
					vectors.Put(ctx, ctx.Shards().Lo, comqueue.SparseVector[float64]{Length: 2, Value: []float64{1, 2}})
				}),
				comqueue.Named("slow", do(func(ctx *comqueue.ComContext) {
					if ctx.TaskID() == 1 {
						time.Sleep(time.Second)
					}
				})),
				stage)
			require.NoError(t, err)
			slow := time.Duration(0)
			for _, s := range result.Report.Queues[0].Stages {
				if s.Program != "" {
					require.Zero(t, s.Busy, "%s: %s", name, s.Name)
				}
				slow += s.Busy
			}
			require.Equal(t, 2*time.Second, slow, name)
		})
	}
}

func TestBarrierLetsNobodyPassBeforeAllHaveCome(t *testing.T) {
	for _, p := range parallelisms {
		var came atomic.Int64
		_, err := supersteps(t, p, 100,
			comqueue.Barrier(),
			do(func(*comqueue.ComContext) { came.Add(1) }),
			comqueue.Repeat(2, nil, comqueue.Barrier()),
			comqueue.Do(func(ctx *comqueue.ComContext) error {
				if n := came.Load() % int64(100*p); n != int64(p*ctx.StepNo()%(100*p)) { // number of arrivals in this run
					return fmt.Errorf("%d subtasks have arrived, want %d", n, p*ctx.StepNo())
				}
				return nil
			}),
			comqueue.Barrier())
		require.NoError(t, err)
	}
}

func TestReduceScatterGivesEachSubtaskItsBlock(t *testing.T) {
	// This operator of single elements is associative but does not commute: it keeps the left
	// operand if that is below 5.
	left := comqueue.Operator("left", 0, func(dst, src []float64) {
		for i := range dst {
			if dst[i] > 5 {
				dst[i] = src[i] - dst[i]/16
			}
		}
	})
	reference := map[string]func(a, b float64) float64{
		"sum": func(a, b float64) float64 { return a + b },
		"max": math.Max, // there are no NaNs, and zeros have one sign
		"left": func(a, b float64) float64 {
			if a > 5 {
				return b - a/16
			}
			return a
		},
	}
	value := func(r, i int) float64 { return math.Ldexp(float64((r*31+i*17)%97)-40, (r*13+i)%60-30) }
	from, into, length := shared.Scratch[[]float64]("from"), shared.Scratch[[]float64]("into"), shared.Scratch[int]("length")
	for name, option := range map[string]comqueue.ReduceOption{"sum": comqueue.Sum, "max": comqueue.Max, "left": left} {
		for _, p := range parallelisms {
			for _, n := range testsize.Raced([]int{0, 1, p - 1, p, p + 1, 97, 20000}, []int{0, p - 1, 97, 20000}) {
				for _, by := range []string{"", "direct", "halving"} {
					options := []comqueue.ReduceOption{option, comqueue.Length(length)}
					if by != "" {
						options = append(options, comqueue.Algorithm(by))
					}
					_, err := supersteps(t, p, 2,
						do(func(ctx *comqueue.ComContext) {
							buffer := make([]float64, n+3)
							for i := range buffer {
								buffer[i] = value(ctx.TaskID(), i)
							}
							from.Put(ctx, buffer)
							length.Put(ctx, n)
						}),
						comqueue.ReduceScatter(from, into, options...),
						comqueue.Do(func(ctx *comqueue.ComContext) error {
							own := sharding.Split(n, p, ctx.TaskID())
							got := into.Get(ctx)
							if len(got) != own.Len() {
								return fmt.Errorf("subtask %d got %d elements of %v", ctx.TaskID(), len(got), own)
							}
							leaves := make([]float64, p)
							for i := own.Lo; i < own.Hi; i++ {
								for r := range leaves {
									leaves[r] = value(r, i)
								}
								want := sharding.FoldRanks(leaves, reference[name])
								if math.Float64bits(want) != math.Float64bits(got[i-own.Lo]) {
									return fmt.Errorf("element %d is %v, want %v", i, got[i-own.Lo], want)
								}
							}
							for i, v := range from.Get(ctx) {
								if v != value(ctx.TaskID(), i) {
									return fmt.Errorf("element %d of the buffer that the subtask contributed has changed", i)
								}
							}
							return nil
						}))
					require.NoError(t, err, "%s of %d elements by %q, parallelism %d", name, n, by, p)
				}
			}
		}
	}
}

func TestSteadySuperstepsAllocateNothing(t *testing.T) {
	part, all, node0 := shared.Scratch[[]float64]("part"), shared.Scratch[[]float64]("all"), shared.Scratch[[]float64]("node 0")
	block, model := shared.Scratch[[]float64]("block"), shared.Scratch[[]float64]("model")
	var before, after runtime.MemStats
	_, err := superstepsWith(t, 2, 1100, false,
		do(func(ctx *comqueue.ComContext) {
			switch {
			case ctx.StepNo() == 1:
				part.Put(ctx, make([]float64, 40+ctx.TaskID()))
				model.Put(ctx, make([]float64, 40))
			case ctx.TaskID() > 0:
			case ctx.StepNo() == 100:
				runtime.ReadMemStats(&before)
			case ctx.StepNo() == 1100:
				runtime.ReadMemStats(&after)
			}
		}),
		comqueue.AllGather(part, all), comqueue.Gather(part, node0), comqueue.Broadcast(model), comqueue.ReduceScatter(model, block),
		comqueue.AllReduce(model), comqueue.Barrier())
	require.NoError(t, err)
	require.Less(t, after.Mallocs-before.Mallocs, uint64(1000), "1000 supersteps must make fewer than 1000 allocations")
}
