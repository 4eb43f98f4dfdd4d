package tests

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/task"
)

// TestSingleOperatorsGoOn requires that an operator that runs in one subtask, and whose rows of a shard
// depend on other shards, gives a queue the rows of an undisturbed run if only one shard is missing.
func TestSingleOperatorsGoOn(t *testing.T) {
	rows := make([]cell, 40)
	for i := range rows {
		rows[i] = cell{Key: int64(i), Value: float64(i) + 0.25}
	}
	for op := range graphOps {
		if graphOps[op].inputs != 1 {
			continue
		}
		t.Run(graphOps[op].name, func(t *testing.T) {
			g := keptGraph{
				steps:     []step{{rows: rows}, {op: op, in: []int{0}, arg: 7, purpose: new(string)}, {op: queueOp, in: []int{1, 1, 1}, arg: 2}},
				collected: []bool{false, false, true},
			}
			want, err := g.run(t, &bomb{}, engine.Parallelism(4))
			require.NoError(t, err)
			kept := make([]*task.Retained, 4)
			for i := range kept {
				kept[i] = task.NewRetained()
				defer func() { require.NoError(t, kept[i].Close()) }()
			}
			options := []engine.Option{engine.Parallelism(4), engine.Workers(4), engine.Retaining(kept)}
			for lost := range kept {
				var b bomb
				b.left.Store(4 + 4 + graphShards + 4 + 1) // all subtasks have read their rows
				_, err = g.run(t, &b, options...)
				require.ErrorIs(t, err, errBomb)
				require.NoError(t, kept[lost].Close())
				kept[lost] = task.NewRetained()
			}
			got, err := g.run(t, &bomb{}, options...)
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}
