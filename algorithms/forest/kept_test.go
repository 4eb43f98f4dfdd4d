package forest_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
)

// TestForestsFromKeptStateHaveTheSameBits requires that forests of several supersteps resume
// from their checkpointed state alone. Trees, their summary, measures out of the bag and the
// list of trees that drew nothing must have the same bits if all other state is dropped between
// supersteps, whether subtasks have copies of all rows or not.
func TestForestsFromKeptStateHaveTheSameBits(t *testing.T) {
	two, three, some := classes(11, 60, 4, 2), classes(12, 60, 4, 3), numbers(13, 60, 4)
	sparse := scarce(14, 60, 30)
	sparse.Sparse = true
	few := numbers(15, 40, 3)
	begun := forest.Params{LabelCol: "label", Task: forest.Classification, NumTrees: 7, MaxDepth: 4, OOBScore: true, Seed: 9}
	start := train(t, two, begun)
	for name, c := range map[string]struct {
		table trial.Table
		p     forest.Params
	}{
		"two classes":          {two, forest.Params{Task: forest.Classification, OOBScore: true}},
		"three classes":        {three, forest.Params{Task: forest.Classification, Balanced: true, WeightCol: "weight", OOBScore: true, Criterion: forest.Entropy}},
		"numbers":              {some, forest.Params{WeightCol: "weight", OOBScore: true}},
		"numbers of a part":    {some, forest.Params{Sampling: forest.Subset, SampleShare: 0.5, OOBScore: true}},
		"bags of next to no":   {few, forest.Params{Sampling: forest.Subset, SampleShare: 0.02, OOBScore: true}},
		"no bags":              {some, forest.Params{Method: forest.ExtraTrees}},
		"bounded":              {some, forest.Params{MaxLeaves: 5}},
		"sparse":               {sparse, forest.Params{AbsentIsZero: true, OOBScore: true}},
		"many categories":      {coded(numbers(16, 350, 3)), forest.Params{CategoricalAt: []int{0}, OOBScore: true, MinSamplesLeaf: 20}},
		"trees that are added": {two, forest.Params{Task: forest.Classification, OOBScore: true, Start: start, Seed: 9}},
	} {
		for _, memory := range []int64{0, 2000} {
			t.Run(fmt.Sprintf("%s, memory %d", name, memory), func(t *testing.T) {
				p := c.p
				p.LabelCol, p.NumTrees, p.MaxDepth, p.Memory = "label", 52, 4, memory
				trial.SameBits(t, func(b *engine.Builder) {
					engine.Collect(forest.Train(c.table.Dataset(b), p), "model")
				}, forest.Kind)
			})
		}
	}
}

// TestKeptForestsAreChecked requires that state that is kept on every subtask is the same on
// all subtasks, and at any parallelism.
func TestKeptForestsAreChecked(t *testing.T) {
	table := classes(18, 60, 4, 3)
	for _, memory := range []int64{0, 2000} {
		p := forest.Params{LabelCol: "label", Task: forest.Classification, NumTrees: 30, MaxDepth: 3, OOBScore: true, Sampling: forest.Subset, SampleShare: 0.02, Memory: memory}
		job := engine.Define("checked", func(b *engine.Builder, _ struct{}) error {
			engine.Collect(forest.Train(table.Dataset(b), p), "model")
			return nil
		})
		require.NoError(t, engine.Check(t.Context(), job, struct{}{}, engine.Shards(8), engine.CheckState(true)))
	}
}

// TestForestFromKeptStateIsTheOneTrainedAtOnce requires that a forest whose trees were
// checkpointed as text has the same file as a forest without checkpoints.
func TestForestFromKeptStateIsTheOneTrainedAtOnce(t *testing.T) {
	table := classes(17, 50, 3, 2)
	p := forest.Params{LabelCol: "label", Task: forest.Classification, NumTrees: 30, MaxDepth: 3}
	want, err := train(t, table, p).Encode()
	require.NoError(t, err)
	got, err := train(t, table, p, engine.CheckState(true), engine.Parallelism(1)).Encode()
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}
