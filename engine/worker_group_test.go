package engine_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/transport/middlebox"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// TestSilentRanks requires that the ranks of a queue, and connections for rows, allow the silence that the
// deployment says: workers that hear nothing of each other fail after that time.
func TestSilentRanks(t *testing.T) {
	const silence = 300 * time.Millisecond
	valves := make(chan *middlebox.Valve, 1)
	var valve *middlebox.Valve
	sums := shared.Scratch[[]float64]("sums")
	data := comqueue.PartitionedRows("rows")
	job := engine.Define("silent", func(b *engine.Builder, _ struct{}) error {
		points := operators.Map(operators.Generate(b, 60, func(draws sharding.Random, i int64) []float64 { return []float64{draws.Float64()} }),
			func(v []float64) point { return point{v} })
		closed := comqueue.New(b, "silent").
			InitWithPartitionedData(data, points).
			Init(func(ctx *comqueue.ComContext) error {
				sums.Put(ctx, make([]float64, 1))
				return nil
			}).
			Do(func(ctx *comqueue.ComContext) error {
				if ctx.TaskID() == 0 && ctx.StepNo() == 2 {
					valve = <-valves
					valve.Hold()
				}
				return nil
			}).
			Add(comqueue.AllReduce(sums)).
			SetMaxIter(1_000_000).
			CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]point, error) { return nil, nil })).
			Exec()
		engine.Collect(closed, "closed")
		return nil
	})
	got := engine.RunValved(t, job, struct{}{}, silence, valves)
	defer valve.Close()
	require.Nil(t, got.Result)
	said := regexp.MustCompile(`was silent for ([0-9.]+m?s)`)
	noticed := 0
	for worker, f := range got.Failures { // the one that notices it second may have been told to stop
		require.NotNil(t, f, "worker %d", worker)
		if m := said.FindStringSubmatch(f.Message); m != nil {
			d, err := time.ParseDuration(m[1])
			require.NoError(t, err)
			require.Less(t, d, 2*time.Second, "worker %d; by default it would be 4 s", worker)
			noticed++
		}
	}
	require.Positive(t, noticed, "%v", got.Failures)
}
