package forest

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// TestOutOfBag requires that the measures out of the bag follow their definition: each row is
// predicted by the mean of the trees that did not draw it. The test computes the measures in a
// far simpler way than training does.
func TestOutOfBag(t *testing.T) {
	const shards = 8
	for _, task := range []Task{Regression, Classification} {
		table := trial.Gaussian(4, 300, 4)
		for i := range table.N {
			x := table.Row(i)
			y := 2*x[0] + x[1]
			if task == Classification {
				y = math.Mod(math.Floor(math.Abs(y)), 3)
			}
			table.Label = append(table.Label, y)
			table.Weight = append(table.Weight, 1+math.Mod(float64(i), 4))
		}
		p := Params{LabelCol: "label", WeightCol: "weight", Task: task, NumTrees: 11, OOBScore: true, Seed: 3}
		r := trial.Run(t, func(b *engine.Builder) { engine.Collect(Train(table.Dataset(b), p), "model") }, engine.Shards(shards))
		m, err := ModelOf(r, "model")
		require.NoError(t, err)

		s := newSampler(p.withDefaults(1))
		var weight, score, loss, mean, spread float64
		type row struct{ w, y, e float64 }
		var rows []row
		drawn := make([][]uint8, p.NumTrees)
		shard := 0
		for i := range table.N {
			// Shard k has the rows from k·N/shards to (k+1)·N/shards − 1.
			for table.N*(shard+1)/shards <= i {
				shard++
			}
			first := shard * table.N / shards
			if i == first {
				for k := range drawn {
					drawn[k] = make([]uint8, table.N)
					s.draw(k, shard, drawn[k])
				}
			}
			n, sums := 0.0, make([]float64, max(1, len(m.Classes.Values)))
			for k := range m.Trees.Trees {
				if drawn[k][i-first] > 0 {
					continue
				}
				n++
				leaf := int(m.Trees.Trees[k].Leaf(table.Row(i), true))
				for c := range sums {
					if task == Regression {
						sums[c] += m.Trees.Trees[k].Nodes[leaf].Value
					} else {
						sums[c] += m.Trees.Trees[k].Values[leaf*len(sums)+c]
					}
				}
			}
			if n == 0 {
				continue
			}
			w, y := table.Weight[i], table.Label[i]
			weight += w
			if task == Regression {
				rows = append(rows, row{w, y, sums[0]/n - y})
				mean += w * y
				continue
			}
			rows = append(rows, row{})
			if kernel.Argmax(sums) == int(y) {
				score += w
			}
			loss -= w * math.Log(max(sums[int(y)]/n, 0x1p-52))
		}
		require.EqualValues(t, len(rows), m.OutOfBag.Rows)
		require.Greater(t, len(rows), 250)
		if task == Classification {
			require.InDelta(t, score/weight, m.OutOfBag.Score, 1e-12)
			require.InDelta(t, loss/weight, m.OutOfBag.Loss, 1e-12)
			continue
		}
		for _, r := range rows {
			loss += r.w * r.e * r.e
			spread += r.w * (r.y - mean/weight) * (r.y - mean/weight)
		}
		require.InDelta(t, 1-loss/spread, m.OutOfBag.Score, 1e-12)
		require.InDelta(t, math.Sqrt(loss/weight), m.OutOfBag.Loss, 1e-12)
		require.Greater(t, m.OutOfBag.Score, 0.5)
	}
}

func TestOutOfBagOfNothing(t *testing.T) {
	require.Equal(t, &OutOfBag{}, outOfBag(Regression, make([]float64, oobParts)))
	sums := []float64{oobWeight: 2, oobRight: 1, oobError: 3, oobRows: 2, oobSquares: 0, oobLabel: 0}
	require.Equal(t, &OutOfBag{Score: 0.5, Loss: 1.5, Rows: 2}, outOfBag(Classification, sums))
	require.Equal(t, &OutOfBag{Loss: math.Sqrt(1.5), Rows: 2}, outOfBag(Regression, sums))
}
