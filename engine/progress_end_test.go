package engine

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/wire"
)

// TestTheEndHasTheLastValues requires that the last progress takes the values of a queue from
// the report, because the events of a cluster stop before the queue ends. The rate at the end
// must be the average over the whole run.
func TestTheEndHasTheLastValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plan.Plan{Shards: 2, Vertices: []plan.Vertex{{ID: 0, Name: "rows"}}, Queues: []plan.Queue{{Name: "q", MaxSupersteps: 9}}}
		var last Progress
		w := startWatch(p, &config{onProgress: func(p Progress) { last = p }}, func(error) {})
		w.cluster(&wire.Progress{
			Vertices: []wire.VertexProgress{{Rows: 600, ShardsDone: 2}},
			Queues:   []wire.QueueProgress{{Superstep: 3, Values: []wire.ReportedValue{{Name: "loss", Value: 5}, {Name: "late", Value: 1}}}},
		})
		time.Sleep(30 * time.Second) // no events arrive
		require.NoError(t, w.stop(&task.Report{Queues: []task.QueueReport{{Name: "q", Supersteps: 4, Series: []task.Series{
			{Name: "loss", Values: []float64{8, 6, 5, 4.5}}, {Name: "late", Values: []float64{1, 1, 1, math.NaN()}},
		}}}}, nil))
		require.True(t, last.Done)
		require.Equal(t, []QueueProgress{{Name: "q", Superstep: 4, Max: 9, Ended: true, Values: []Value{{Name: "loss", Value: 4.5}}}}, last.Queues)
		require.InDelta(t, 20, last.RowsPerSecond, 1e-9)
	})
}

// TestProgressBeginsAgain requires that the progress of another attempt of a job begins at zero,
// although counts of one attempt never decrease.
func TestProgressBeginsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &plan.Plan{Shards: 2, Vertices: []plan.Vertex{{ID: 0, Name: "rows"}}, Queues: []plan.Queue{{Name: "q", MaxSupersteps: 3}}}
		var last Progress
		w := startWatch(p, &config{onProgress: func(p Progress) { last = p }}, func(error) {})
		at := func(rows int64, shards, superstep int, ended bool) Progress {
			w.cluster(&wire.Progress{
				Vertices: []wire.VertexProgress{{Rows: rows, ShardsDone: shards}},
				Queues:   []wire.QueueProgress{{Superstep: superstep, Ended: ended, Values: []wire.ReportedValue{{Name: "loss", Value: float64(superstep)}}}},
			})
			time.Sleep(ProgressInterval)
			synctest.Wait()
			return last
		}
		at(600, 2, 3, true)
		require.Equal(t, 3, at(500, 1, 2, false).Queues[0].Superstep)
		w.again()
		now := at(20, 1, 1, false)
		require.Equal(t, int64(20), now.Rows)
		require.Equal(t, 1, now.Vertices[0].ShardsDone)
		require.Equal(t, 1, now.Queues[0].Superstep)
		require.False(t, now.Queues[0].Ended)
		require.Equal(t, []Value{{Name: "loss", Value: 1}}, now.Queues[0].Values)
		require.GreaterOrEqual(t, now.RowsPerSecond, 0.0)
		require.NoError(t, w.stop(nil, errors.New("the end")))
	})
}

// TestStacksAreDetails requires that a progress line gives the cause of a failure, and that the
// stack is in a separate field.
func TestStacksAreDetails(t *testing.T) {
	err := &task.PanicError{Value: "boom", Frames: []string{"main.f (/src/main.go:3)", "main.g (/src/main.go:7)"}}
	e := progressObject(Progress{Done: true, Err: err})
	require.Equal(t, "panic: boom", e.Error)
	require.Equal(t, "main.f (/src/main.go:3)\nmain.g (/src/main.go:7)", e.Detail)
	e = progressObject(Progress{Done: true, Err: errors.New("one\n  two (three)")})
	require.Equal(t, "one\n  two (three)", e.Error)
	require.Empty(t, e.Detail)
	require.Equal(t, "0.0s · failed: panic: boom", renderState(Progress{State: "failed", Detail: err.Error()}, math.MaxInt))
}
