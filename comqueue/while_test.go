package comqueue_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// TestWhileAsksBeforeEachRound requires that rounds run as long as the condition holds, at most
// max times and possibly not at all, and that all subtasks take part in the collectives of a
// round. Two loops with a max of 1 and opposite conditions may fill the same buffer.
func TestWhileAsksBeforeEachRound(t *testing.T) {
	value, sum := shared.Scratch[[]float64]("value"), shared.Scratch[[]float64]("sum")
	above := func(ctx *comqueue.ComContext) (bool, error) { return value.Get(ctx)[0] >= 1, nil }
	odd := func(ctx *comqueue.ComContext) (bool, error) { return ctx.StepNo()%2 == 1, nil }
	even := func(ctx *comqueue.ComContext) (bool, error) { return ctx.StepNo()%2 == 0, nil }
	part := func(ctx *comqueue.ComContext, shard int, out []float64) error {
		out[0] = float64(ctx.StepNo())
		return nil
	}
	starts := []float64{0, 3, 0.5, 1000}
	build := func(b *engine.Builder) *engine.Dataset {
		return comqueue.New(b, "while").
			InitWithPartitionedData(data, dataset(b, 9, func(int) float64 { return 1 })).
			Do(func(ctx *comqueue.ComContext) error {
				value.Put(ctx, []float64{starts[ctx.StepNo()]})
				sum.Put(ctx, []float64{-1})
				return nil
			}).
			Add(comqueue.While(5, above,
				comqueue.Do(func(ctx *comqueue.ComContext) error { value.Get(ctx)[0] /= 2; return nil }),
				comqueue.AllReduce(value, comqueue.Max))).
			Add(comqueue.While(1, odd, comqueue.ForEachShard(sum, part), comqueue.AllReduce(sum))).
			Add(comqueue.While(1, even, comqueue.ForEachShard(sum, part), comqueue.AllReduce(sum, comqueue.Max))).
			Do(func(ctx *comqueue.ComContext) error {
				want := []float64{0, 0.75, 0.5, 31.25}[ctx.StepNo()]
				shards := []float64{0, 9, 2, 27}[ctx.StepNo()] // each of nine shards has a row
				if got := value.Get(ctx)[0]; got != want || sum.Get(ctx)[0] != shards {
					return fmt.Errorf("superstep %d ends with %v and %v, want %v and %v", ctx.StepNo(), got, sum.Get(ctx)[0], want, shards)
				}
				return nil
			}).
			CloseOnNode0(comqueue.Output(nothing)).
			SetMaxIter(3).
			Exec()
	}
	_, result, err := run(t, build, engine.Parallelism(3))
	require.NoError(t, err)
	calls := map[string]int64{}
	for _, s := range result.Report.Queues[0].Stages {
		calls[s.Name] += s.Calls
	}
	require.Equal(t, int64(3*(2+0+5)), calls[`AllReduceSum "value"`], "%v", calls)
	require.Contains(t, result.Plan.Text(), "while=")
}

// TestInvalidWhile requires errors that name the mistake, and the subtasks that disagree
// about the condition.
func TestInvalidWhile(t *testing.T) {
	value := shared.Scratch[[]float64]("value")
	put := do(func(ctx *comqueue.ComContext) { value.Put(ctx, []float64{1}) })
	always := func(*comqueue.ComContext) (bool, error) { return true, nil }
	for text, stage := range map[string]comqueue.Stage{
		"While: the condition is nil": comqueue.While(1, nil, put),
		"While: the maximum is 0":     comqueue.While(0, always, put),
		"While: there are no stages":  comqueue.While(1, always),
		"While: a stage is nil":       comqueue.While(1, always, nil),
		"the weather is bad":          comqueue.While(1, func(*comqueue.ComContext) (bool, error) { return false, errors.New("the weather is bad") }, put),
		`ranks disagree: rank `:       comqueue.While(1, func(ctx *comqueue.ComContext) (bool, error) { return ctx.TaskID() == 0, nil }, comqueue.AllReduce(value)),
	} {
		_, err := supersteps(t, 2, 1, put, stage, comqueue.AllReduce(value, comqueue.Max))
		require.ErrorContains(t, err, text)
	}
}
