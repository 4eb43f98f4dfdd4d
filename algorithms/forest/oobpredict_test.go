package forest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// judged is a row in the result of PredictOutOfBag.
type judged struct {
	Prediction  *float64
	Probability *[]float64
}

// TestPredictOutOfBag requires that predictions out of the bag follow their definition, and
// that they give the measures of training. The test finds the trees that did not draw a row by
// drawing for whole shards.
func TestPredictOutOfBag(t *testing.T) {
	const shards = 8
	for name, p := range map[string]Params{
		"numbers":         {NumTrees: 5},
		"classes":         {NumTrees: 6, Task: Classification, MaxDepth: 3},
		"subset":          {NumTrees: 3, Sampling: Subset, SampleShare: 0.7},
		"trees of no row": {NumTrees: 5, SampleShare: 0.005, Task: Classification},
	} {
		t.Run(name, func(t *testing.T) {
			table := trial.Gaussian(5, 210, 3)
			for i := range table.N {
				y := 2*table.Row(i)[0] + table.Row(i)[1]
				if p.Task == Classification {
					y = math.Mod(math.Floor(math.Abs(y)), 3)
				}
				table.Label = append(table.Label, y)
			}
			p.LabelCol, p.OOBScore, p.Seed = "label", true, 3
			var first string
			for tasks := 1; tasks <= 3; tasks++ {
				r := trial.Run(t, func(b *engine.Builder) {
					rows := table.Dataset(b)
					made := Train(rows, p)
					engine.Collect(made, "model")
					engine.Collect(PredictOutOfBag(rows, made, PredictOptions{}), "rows")
				}, engine.Shards(shards), engine.Parallelism(tasks), engine.BatchRows(1+6*(tasks-1)))
				if text := trial.Print(t, r); first == "" {
					first = text
				} else {
					require.Equal(t, first, text)
				}
				if tasks > 1 {
					continue
				}
				m, err := ModelOf(r, "model")
				require.NoError(t, err)
				require.Equal(t, name == "trees of no row", len(m.OutOfBag.Whole) > 0)
				got := judgedRows(t, r, p.Task)
				require.Len(t, got, table.N)
				checkOutOfBag(t, table, m, p, shards, got)
			}
		})
	}
}

// judgedRows returns the collected rows of r.
func judgedRows(t *testing.T, r *engine.Result, task Task) (rows []judged) {
	t.Helper()
	if task == Regression {
		numbers, err := engine.Rows[struct{ Prediction *float64 }](r, "rows")
		require.NoError(t, err)
		for _, n := range numbers {
			rows = append(rows, judged{Prediction: n.Prediction})
		}
		return rows
	}
	rows, err := engine.Rows[judged](r, "rows")
	require.NoError(t, err)
	return rows
}

// checkOutOfBag compares the rows got with the definition.
func checkOutOfBag(t *testing.T, table trial.Table, m *Model, p Params, shards int, got []judged) {
	t.Helper()
	s := newSampler(p.withDefaults(1))
	s.empty = m.OutOfBag.Whole
	right, judges := 0, 0
	for shard := range shards {
		lo, hi := shard*table.N/shards, (shard+1)*table.N/shards
		drawn := make([][]uint8, p.NumTrees)
		for k := range drawn {
			drawn[k] = make([]uint8, hi-lo)
			s.draw(k, shard, drawn[k])
		}
		for i := lo; i < hi; i++ {
			n, sums := 0.0, make([]float64, m.Trees.Outputs)
			for k := range m.Trees.Trees {
				if tree := &m.Trees.Trees[k]; drawn[k][i-lo] == 0 {
					n++
					leaf := int(tree.Leaf(table.Row(i), true))
					for c := range sums {
						if p.Task == Regression {
							sums[c] += tree.Nodes[leaf].Value
						} else {
							sums[c] += tree.Values[leaf*len(sums)+c]
						}
					}
				}
			}
			if n == 0 {
				require.Equal(t, judged{}, got[i])
				continue
			}
			judges++
			require.NotNil(t, got[i].Prediction)
			if p.Task == Regression {
				require.Equal(t, sums[0]/n, *got[i].Prediction)
				continue
			}
			require.Equal(t, float64(kernel.Argmax(sums)), *got[i].Prediction)
			for c := range sums {
				require.Equal(t, sums[c]/n, (*got[i].Probability)[c])
			}
			if *got[i].Prediction == table.Label[i] {
				right++
			}
		}
	}
	require.EqualValues(t, m.OutOfBag.Rows, judges)
	if p.Task == Classification {
		require.InDelta(t, m.OutOfBag.Score, float64(right)/float64(judges), 1e-12)
	}
}

func TestPredictOutOfBagRefuses(t *testing.T) {
	table := trial.Gaussian(5, 20, 3)
	table.Label = make([]float64, 20)
	p := Params{LabelCol: "label", NumTrees: 2}
	refused := func(p Params, text string) {
		t.Helper()
		trial.Fails(t, func(b *engine.Builder) {
			rows := table.Dataset(b)
			engine.Collect(PredictOutOfBag(rows, Train(rows, p), PredictOptions{}), "rows")
		}, text)
	}
	refused(p, "was trained without OOBScore")
	p.OOBScore, p.Skip = true, true
	refused(p, "was trained with Skip")
	p.Skip = false
	m := modelOf(t, table, p, 1)
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(PredictOutOfBag(table.Dataset(b), m.Dataset(b), PredictOptions{}), "rows")
	}, "shards, and those of the training were in 4")
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(PredictOutOfBag(table.Dataset(b), m.Dataset(b), PredictOptions{VectorCol: "features", FeatureCols: []string{"a"}}), "rows")
	}, "both VectorCol and FeatureCols are set")
}
