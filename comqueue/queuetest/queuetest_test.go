package queuetest_test

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/comqueue/queuetest"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

type point struct{ X float64 }

type weight struct {
	Name string
	By   float64
}

var (
	points  = comqueue.PartitionedRows("points")
	x       = points.Floats("x")
	weights = comqueue.BroadcastRows("weights")
	by      = weights.Floats("by")
	total   = shared.Scratch[[]float64]("total")
	rounds  = shared.Replicated("rounds", shared.Msgpack[int]())
	visits  = shared.PerShard("visits", shared.Msgpack[int]())
)

// addUp adds to out the sum of a shard's points, multiplied by the first weight, and counts the
// call for the shard.
func addUp(ctx *comqueue.ComContext, shard int, out []float64) error {
	for _, v := range x.Get(ctx, shard) {
		out[0] += v * by.Get(ctx)[0]
	}
	visits.Put(ctx, shard, visits.Get(ctx, shard)+1)
	return nil
}

func count(ctx *comqueue.ComContext) error {
	rounds.Put(ctx, rounds.Get(ctx)+1)
	ctx.Report("rounds", float64(rounds.Get(ctx)))
	return nil
}

// numbers returns the points 0 to n-1.
func numbers(n int) []point {
	all := make([]point, n)
	for i := range all {
		all[i].X = float64(i)
	}
	return all
}

func setup(subtasks, n, supersteps int) queuetest.Setup {
	return queuetest.Setup{
		Subtasks: subtasks, Supersteps: supersteps,
		Given: []queuetest.Given{
			queuetest.Rows(points, numbers(n)),
			queuetest.BroadcastRows(weights, []weight{{"all", 0.5}}),
			queuetest.Object(total, func(int) []float64 { return make([]float64, 1) }),
			queuetest.Object(rounds, func(int) int { return 10 }),
			queuetest.ShardObject(visits, func(shard int) int { return 100 * shard }),
		},
		Stages: []comqueue.Stage{comqueue.ForEachShard(total, addUp), comqueue.AllReduce(total), comqueue.Do(count)},
	}
}

// TestStagesSeeWhatIsGiven requires that stages find the given rows and objects, and that their
// results can be inspected, for several numbers of subtasks, rows and supersteps, with and
// without CheckState.
func TestStagesSeeWhatIsGiven(t *testing.T) {
	for _, subtasks := range []int{0, 1, 2, 3, 8, 11} {
		for _, n := range []int{0, 1, 7, 100} {
			for _, supersteps := range []int{0, 3} {
				for _, forget := range []bool{false, true} {
					s := setup(subtasks, n, supersteps)
					s.Options = []engine.Option{engine.CheckState(forget), engine.BatchRows(2)}
					var seen []int
					report, err := queuetest.Run(s, func(ctx *comqueue.ComContext) {
						seen = append(seen, ctx.TaskID())
						require.Equal(t, []float64{float64(n*(n-1)) / 4}, total.Get(ctx))
						require.Equal(t, 10+max(1, supersteps), rounds.Get(ctx))
						for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
							want := 100 * shard
							if len(x.Get(ctx, shard)) > 0 {
								want += max(1, supersteps)
							}
							require.Equal(t, want, visits.Get(ctx, shard))
						}
					})
					require.NoError(t, err)
					require.Len(t, seen, max(1, subtasks))
					for i, task := range seen {
						require.Equal(t, i, task)
					}
					require.Equal(t, max(1, supersteps), report.Supersteps)
					require.Equal(t, "rounds", report.Series[0].Name)
					require.Len(t, report.Series[0].Values, max(1, supersteps))
				}
			}
		}
	}
}

// TestShardRows requires that rows can be given by shard, and that rows of a shard that does
// not exist are reported.
func TestShardRows(t *testing.T) {
	s := setup(2, 0, 1)
	s.Shards = 4
	s.Given[0] = queuetest.ShardRows(points, map[int][]point{1: numbers(3), 3: {{40}}})
	var got [4][]float64
	_, err := queuetest.Run(s, func(ctx *comqueue.ComContext) {
		for shard := ctx.Shards().Lo; shard < ctx.Shards().Hi; shard++ {
			got[shard] = append(got[shard], x.Get(ctx, shard)...)
		}
	})
	require.NoError(t, err)
	require.Equal(t, [4][]float64{nil, {0, 1, 2}, nil, {40}}, got)
	s.Given[0] = queuetest.ShardRows(points, map[int][]point{4: numbers(3)})
	_, err = queuetest.Run(s, nil)
	require.ErrorContains(t, err, `rows of "points" are given for shard 4, and there are 4 shards`)
}

// TestStagesThatFail requires that failures are reported as in a job, and that inspect is then
// not called.
func TestStagesThatFail(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *queuetest.Setup)
		want   []string
	}{
		"error": {func(s *queuetest.Setup) {
			s.Stages[2] = comqueue.Named("break", comqueue.Do(func(*comqueue.ComContext) error { return errors.New("boom") }))
		}, []string{"boom", `Compute "break"`, "subtask"}},
		"panic": {func(s *queuetest.Setup) {
			s.Stages[2] = comqueue.Do(func(*comqueue.ComContext) error { panic("boom") })
		}, []string{"panic: boom"}},
		"nothing given":    {func(s *queuetest.Setup) { s.Given = append(s.Given[:3], s.Given[4:]...) }, []string{`"rounds"`}},
		"nil stage":        {func(s *queuetest.Setup) { s.Stages = []comqueue.Stage{nil} }, []string{"a stage is nil"}},
		"a column too few": {func(s *queuetest.Setup) { s.Given[1] = queuetest.BroadcastRows(weights, []point{{1}}) }, []string{`the dataset for "weights": `, `"by"`}},
		"objects that differ": {func(s *queuetest.Setup) {
			s.Given[3] = queuetest.Object(rounds, func(subtask int) int { return subtask })
		}, []string{`"rounds"`}},
		"too few shards": {func(s *queuetest.Setup) { s.Shards = 1 }, []string{"--shards"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := setup(2, 20, 2)
			test.change(&s)
			_, err := queuetest.Run(s, func(*comqueue.ComContext) { t.Error("inspect must not be called if the run fails") })
			for _, want := range test.want {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// TestTestsThatEnd requires that a test that ends while it inspects also ends the run.
func TestTestsThatEnd(t *testing.T) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = queuetest.Run(setup(3, 20, 1), func(*comqueue.ComContext) { runtime.Goexit() })
		t.Error("the goroutine of the test must have ended before this line")
	}()
	<-ended
}

func ExampleRun() {
	_, err := queuetest.Run(queuetest.Setup{
		Subtasks: 3,
		Given: []queuetest.Given{
			queuetest.Rows(points, []point{{1}, {2}, {6}}),
			queuetest.BroadcastRows(weights, []weight{{"all", 2}}),
			queuetest.Object(total, func(int) []float64 { return make([]float64, 1) }),
			queuetest.ShardObject(visits, func(int) int { return 0 }),
		},
		Stages: []comqueue.Stage{comqueue.ForEachShard(total, addUp), comqueue.AllReduce(total)},
	}, func(ctx *comqueue.ComContext) {
		fmt.Println(ctx.TaskID(), total.Get(ctx))
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// 0 [18]
	// 1 [18]
	// 2 [18]
}
