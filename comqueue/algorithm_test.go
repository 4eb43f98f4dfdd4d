package comqueue_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// reduced holds the results, on subtask 0, of a queue with two reductions. The first reduces
// the buffers of shards, and the second reduces a whole buffer per subtask.
type reduced struct {
	shards, whole []uint64
	result        *engine.Result
}

// reduce runs a queue that reduces values of many magnitudes: by ForEachShard and AllReduce,
// and by AllReduce of whole buffers. by is the algorithm; if it is "", the stage chooses.
func reduce(t *testing.T, p, n int, by string, options ...comqueue.ReduceOption) (reduced, error) {
	t.Helper()
	if by != "" {
		options = append(options, comqueue.Algorithm(by))
	}
	sums, whole := shared.Scratch[[]float64]("sums"), shared.Scratch[[]float64]("whole")
	var r reduced
	var err error
	r.result, err = supersteps(t, p, 2,
		do(func(ctx *comqueue.ComContext) {
			sums.Put(ctx, make([]float64, n))
			whole.Put(ctx, sparseValues(ctx.TaskID(), n, 1))
			for i, v := range whole.Get(ctx) {
				whole.Get(ctx)[i] = normal(max(min(v, 1e9), -1e9)) // sums of infinities would be NaNs
			}
		}),
		comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []float64) error {
			for i := range out {
				out[i] = float64((shard*13+i*7)%101-50) * pow2((shard*29+i)%80-40)
			}
			return nil
		}),
		comqueue.AllReduce(sums, options...),
		comqueue.AllReduce(whole, options...),
		do(func(ctx *comqueue.ComContext) {
			if ctx.TaskID() == 0 {
				r.shards, r.whole = bits(sums.Get(ctx)), bits(whole.Get(ctx))
			}
		}))
	return r, err
}

func pow2(e int) float64 {
	v := 1.0
	for ; e > 0; e-- {
		v *= 2
	}
	for ; e < 0; e++ {
		v /= 2
	}
	return v
}

// programs returns the programs of the stages whose names have a prefix.
func programs(r *engine.Result, prefix string) (names []string) {
	for _, s := range r.Report.Queues[0].Stages {
		if strings.HasPrefix(s.Name, prefix) {
			names = append(names, s.Program)
		}
	}
	return names
}

// TestAllReduceByEveryAlgorithm requires of every algorithm that its result is independent of
// parallelism unless the plan marks it, and that the report names the algorithm that ran.
func TestAllReduceByEveryAlgorithm(t *testing.T) {
	const n = 40
	one, err := reduce(t, 1, n, "")
	require.NoError(t, err)
	for _, a := range algorithm.For(program.AllReduce) {
		anyForest := a.Forests == algorithm.AnyForest
		require.Equal(t, slices.Contains([]string{"direct", "linear", "allgather-reduce"}, a.Name), anyForest, a.Name)
		for _, p := range parallelisms {
			r, err := reduce(t, p, n, a.Name)
			if unfit := a.Supports(algorithm.Params{P: p}); unfit != nil {
				require.ErrorContains(t, err, unfit.Error())
				require.ErrorContains(t, err, `AllReduce("sums")`)
				continue
			}
			require.NoError(t, err, "%s, parallelism %d", a.Name, p)
			chosen, err := reduce(t, p, n, "")
			require.NoError(t, err)
			text := r.result.Plan.Text()
			require.Equal(t, 6, strings.Count(text, "algorithm="+a.Name), "%s", text)
			if anyForest {
				require.Equal(t, one.shards, r.shards, "%s, parallelism %d", a.Name, p)
				require.Equal(t, 1, strings.Count(text, "depends on parallelism"), "%s", text)
			} else {
				require.Equal(t, 2, strings.Count(text, "depends on parallelism"), "%s", text)
			}
			if a.Canonical(p) {
				require.Equal(t, chosen.whole, r.whole, "%s, parallelism %d", a.Name, p)
			}
			for _, ran := range programs(r.result, "AllReduce") {
				ranks := fmt.Sprintf("%d ranks", p)
				if p == 1 {
					ranks = "1 rank"
				}
				require.Equal(t, a.Name+" over messages, "+ranks, ran)
			}
			for _, s := range r.result.Report.Queues[0].Stages {
				if strings.HasPrefix(s.Name, "AllReduce") {
					require.Equal(t, int64(2*p), s.Calls)
				}
			}
		}
	}
}

// TestEachStageSaysWhatRan requires that the report of a stage names the algorithm of that
// stage, whatever stages ran after it.
func TestEachStageSaysWhatRan(t *testing.T) {
	key := shared.Scratch[[]float64]("key")
	all := shared.Scratch[[]float64]("all")
	result, err := supersteps(t, 4, 3,
		do(func(ctx *comqueue.ComContext) { key.Put(ctx, make([]float64, 8)) }),
		comqueue.AllReduce(key, comqueue.Algorithm("ring")),
		comqueue.AllReduce(key),
		comqueue.AllReduce(key, comqueue.Algorithm("torus:2x2")),
		comqueue.AllGather(key, all, comqueue.Algorithm("bruck")),
		comqueue.AllGather(key, all),
		comqueue.Barrier())
	require.NoError(t, err)
	inMemory := "direct over shared memory, 4 ranks"
	require.Equal(t, []string{"ring over messages, 4 ranks", inMemory + ", by one subtask for all", "torus over messages, 4 ranks"}, programs(result, "AllReduceRecv"))
	require.Equal(t, []string{"bruck over messages, 4 ranks", inMemory}, programs(result, "AllGather"))
	require.Equal(t, []string{"meeting over shared memory, 4 ranks"}, programs(result, "Barrier"))
	text := result.Plan.Text()
	require.Contains(t, text, "algorithm=torus:2x2")
	require.Contains(t, text, "into=all algorithm=bruck")
}

// TestIntegerSumsDoNotDependOnParallelism requires that built-in operators on integers give the
// same result at any parallelism and by any algorithm, and that the plan does not mark their
// results.
func TestIntegerSumsDoNotDependOnParallelism(t *testing.T) {
	sums := shared.Scratch[[]int64]("sums")
	for _, stage := range []comqueue.Stage{comqueue.AllReduce(sums, comqueue.Algorithm("ring")), comqueue.AllReduce(sums, comqueue.Prod, comqueue.Algorithm("double-tree"))} {
		var want []int64
		for _, p := range parallelisms {
			result, err := supersteps(t, p, 1,
				do(func(ctx *comqueue.ComContext) { sums.Put(ctx, make([]int64, 5)) }),
				comqueue.ForEachShard(sums, func(ctx *comqueue.ComContext, shard int, out []int64) error {
					for i := range out {
						out[i] += int64(shard+1)<<40 | int64(i+3)
					}
					return nil
				}),
				stage,
				comqueue.Do(func(ctx *comqueue.ComContext) error {
					if want == nil {
						want = slices.Clone(sums.Get(ctx))
					}
					if !slices.Equal(want, sums.Get(ctx)) {
						return fmt.Errorf("got %v, want %v", sums.Get(ctx), want)
					}
					return nil
				}))
			require.NoError(t, err)
			require.NotContains(t, result.Plan.Text(), "depends on parallelism")
		}
	}
	// The result of a user-defined operator may depend on the order.
	result, err := supersteps(t, 2, 1,
		do(func(ctx *comqueue.ComContext) { sums.Put(ctx, make([]int64, 5)) }),
		comqueue.ForEachShard(sums, func(*comqueue.ComContext, int, []int64) error { return nil }),
		comqueue.AllReduce(sums, comqueue.CommutativeOperator("any", 0, func(dst, src []int64) {}), comqueue.Algorithm("ring")))
	require.NoError(t, err)
	require.Contains(t, result.Plan.Text(), "depends on parallelism")
}

// TestReduceScatterOfShards compares the elements that ReduceScatter gives after ForEachShard
// with those of AllReduce.
func TestReduceScatterOfShards(t *testing.T) {
	hist, block, all := shared.Scratch[[]float64]("hist"), shared.Scratch[[]float64]("block"), shared.Scratch[[]float64]("all")
	for _, by := range []string{"", "direct", "halving", "ring"} {
		for _, n := range []int{0, 1, 7, 100} {
			one, err := reduce(t, 1, n, "")
			require.NoError(t, err)
			for _, p := range parallelisms {
				var options []comqueue.ReduceOption
				if by != "" {
					options = append(options, comqueue.Algorithm(by))
				}
				var got []uint64
				result, err := supersteps(t, p, 2,
					do(func(ctx *comqueue.ComContext) { hist.Put(ctx, make([]float64, n)) }),
					comqueue.ForEachShard(hist, func(ctx *comqueue.ComContext, shard int, out []float64) error {
						if n > 0 && shard == ctx.Shards().Lo && (by == "") != (&out[0] == &hist.Get(ctx)[0]) {
							return fmt.Errorf("by %q: subtask %d must lend the buffer under the key for its first part if and only if the stage chooses the algorithm", by, ctx.TaskID())
						}
						for i := range out {
							out[i] = float64((shard*13+i*7)%101-50) * pow2((shard*29+i)%80-40)
						}
						return nil
					}),
					comqueue.ReduceScatter(hist, block, options...),
					comqueue.AllGather(block, all),
					do(func(ctx *comqueue.ComContext) {
						if ctx.TaskID() == 0 {
							got = bits(all.Get(ctx))
						}
					}))
				require.NoError(t, err)
				require.Len(t, got, n)
				text := result.Plan.Text()
				if by == "" || by == "direct" {
					require.Equal(t, one.shards, got, "by %q, %d elements, parallelism %d", by, n, p)
					require.NotContains(t, text, "depends on parallelism")
					require.Equal(t, by == "direct", strings.HasPrefix(programs(result, "ReduceScatter")[0], "AllReduce, "))
					require.Contains(t, programs(result, "ReduceScatter")[0], "direct over ")
				} else {
					require.Contains(t, text, "ReduceScatter(hist)")
					require.Contains(t, text, "[rank-tree: depends on parallelism]")
					require.Contains(t, programs(result, "ReduceScatter")[0], by+" over messages")
					if p == 1 || p == 2 || by == "halving" && p == 8 { // here the trees over subtasks and over shards are the same
						require.Equal(t, one.shards, got, "by %q, %d elements, parallelism %d", by, n, p)
					}
				}
			}
		}
	}
}

func TestCommutativeOperatorsTakeAnyAlgorithm(t *testing.T) {
	larger := func(dst, src []float64) {
		for i := range dst {
			dst[i] = max(dst[i], src[i])
		}
	}
	option := comqueue.CommutativeOperator("larger", -1e300, larger)
	want, err := reduce(t, 1, 20, "", option)
	require.NoError(t, err)
	for _, by := range []string{"ring", "hierarchical:2", "direct"} {
		for _, p := range []int{2, 3, 8} {
			got, err := reduce(t, p, 20, by, option)
			require.NoError(t, err)
			require.Equal(t, want.shards, got.shards, "%s, parallelism %d", by, p)
		}
	}
	_, err = reduce(t, 3, 20, "halving-doubling", comqueue.Operator("larger", -1e300, larger))
	require.NoError(t, err, "an algorithm that keeps the order of subtasks accepts any operator")
}
