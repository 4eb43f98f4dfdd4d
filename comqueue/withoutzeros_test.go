package comqueue_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// TestWithoutZeros reduces parts of shards with and without the option. The parts are mostly
// zero in every other superstep. It requires the same bits, and fewer bytes sent where parts
// are mostly zero.
func TestWithoutZeros(t *testing.T) {
	const n = 20_000
	plain, sparse := shared.Scratch[[]float64]("plain"), shared.Scratch[[]float64]("sparse")
	part, parts := shared.Scratch[[]float64]("part"), shared.Scratch[[]float64]("parts")
	fill := func(ctx *comqueue.ComContext, shard int, out []float64) error {
		one := 400
		if ctx.StepNo()%2 == 0 {
			one = 1
		}
		r := ctx.Rand("values", shard)
		for i := shard; i < n; i += one {
			out[i] = (r.Float64() - 0.5) * math.Pow(10, float64(r.IntN(25)-8))
		}
		return nil
	}
	prepare := do(func(ctx *comqueue.ComContext) {
		for _, key := range []shared.Key[[]float64]{plain, sparse, parts} {
			key.Put(ctx, make([]float64, n))
		}
	})
	compare := func(ctx *comqueue.ComContext) error {
		want := plain.Get(ctx)
		own := sharding.Split(n, ctx.NumTask(), ctx.TaskID())
		for i, got := range sparse.Get(ctx) {
			if math.Float64bits(got) != math.Float64bits(want[i]) {
				return fmt.Errorf("element %d is %v, and %v without the option", i, got, want[i])
			}
		}
		for i, got := range part.Get(ctx) {
			if math.Float64bits(got) != math.Float64bits(want[own.Lo+i]) {
				return fmt.Errorf("element %d of the part is %v, and %v without the option", i, got, want[own.Lo+i])
			}
		}
		return nil
	}
	for _, p := range parallelisms {
		for workers := range min(p, 2) + 1 {
			if workers == 1 || workers > 1 && p > 3 {
				continue
			}
			var options []engine.Option
			if workers > 1 {
				options = append(options, engine.Workers(workers))
			}
			reports := make([]map[string]int64, 2)
			for _, steps := range []int{1, 2} {
				build := func(b *engine.Builder) *engine.Dataset {
					q := comqueue.New(b, "q").InitWithPartitionedData(data, dataset(b, 16, func(i int) float64 { return float64(i) }))
					for _, s := range []comqueue.Stage{
						prepare, comqueue.ForEachShard(plain, fill), comqueue.AllReduce(plain),
						comqueue.ForEachShard(sparse, fill), comqueue.AllReduce(sparse, comqueue.WithoutZeros()),
						comqueue.ForEachShard(parts, fill), comqueue.ReduceScatter(parts, part, comqueue.WithoutZeros()), comqueue.Do(compare),
					} {
						q.Add(s)
					}
					return q.CloseOnNode0(comqueue.Output(nothing)).SetMaxIter(steps).Exec()
				}
				_, result, err := runOnce(t, build, append(options, engine.Parallelism(p), engine.Shards(16))...)
				require.NoError(t, err)
				require.Contains(t, result.Plan.Text(), "omitted while that is smaller")
				bytes := map[string]int64{}
				for _, s := range result.Report.Queues[0].Stages {
					key := s.Name[strings.LastIndexByte(s.Name, ' ')+1:]
					bytes[key] += s.Bytes
					if !strings.Contains(s.Name, "Recv") {
						bytes["given "+key] += s.Bytes
					}
					if strings.Contains(s.Name, "Recv") && p > 1 {
						require.Equal(t, strings.Contains(s.Name, "sparse"), strings.Contains(s.Program, "without zeros"), "%s: %s", s.Name, s.Program)
						require.Equal(t, steps == 2 && strings.Contains(s.Name, "sparse"), strings.Contains(s.Program, "where that is smaller"), s.Program)
					}
				}
				reports[steps-1] = bytes
			}
			if p == 1 {
				continue
			}
			require.Less(t, 10*reports[0][`"sparse"`], reports[0][`"plain"`], "%d subtasks, %d workers", p, workers)
			require.Less(t, reports[0][`"parts"`], reports[0][`"sparse"`])
			if workers == 0 { // the parts of an AllReduce; between processes, counts are sent in addition
				require.Equal(t, reports[0][`given "sparse"`], reports[0][`"parts"`])
			}
		}
	}
}

// TestInvalidWithoutZeros requires errors that name the mistake.
func TestInvalidWithoutZeros(t *testing.T) {
	from, into := shared.Scratch[[]float64]("from"), shared.Scratch[[]float64]("into")
	for text, stage := range map[string]comqueue.Stage{
		"WithoutZeros and an Algorithm, ring, are given":                     comqueue.AllReduce(from, comqueue.WithoutZeros(), comqueue.Algorithm("ring")),
		"WithoutZeros is given for a buffer that ForEachShard does not fill": comqueue.ReduceScatter(from, into, comqueue.WithoutZeros()),
	} {
		_, err := supersteps(t, 2, 1, do(func(ctx *comqueue.ComContext) { from.Put(ctx, []float64{1, 2}) }), stage)
		require.ErrorContains(t, err, text)
	}
}
