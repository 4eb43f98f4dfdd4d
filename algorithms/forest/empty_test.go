//go:build !race

// These tests train many models, which takes too long under the race detector. Other tests run
// the same code under it.

package forest

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
)

// everyWay trains a forest on one subtask, on three subtasks with copies of all rows, on three
// subtasks without copies, and by adding trees to a smaller forest. It requires that all of
// them give the same bytes, and returns the forest.
func everyWay(t *testing.T, table trial.Table, p Params) *Model {
	t.Helper()
	m := modelOf(t, table, p, 1)
	want, err := m.Encode()
	require.NoError(t, err)
	same := func(p Params, tasks int) {
		t.Helper()
		got, err := modelOf(t, table, p, tasks).Encode()
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
	same(p, 3)
	part := p
	part.NumTrees = p.NumTrees/2 - 1
	p.Memory = 1
	same(p, 3)
	p.Start = modelOf(t, table, part, 1)
	same(p, 3)
	p.Memory = 0
	same(p, 1)
	return m
}

// fewRows returns n rows with one feature and the labels that label returns.
func fewRows(n int, label func(i int) float64) trial.Table {
	table := trial.Table{N: n, D: 1}
	for i := range n {
		table.X = append(table.X, float64(i))
		table.Label = append(table.Label, label(i))
		table.Weight = append(table.Weight, 1)
	}
	return table
}

// TestTreesWithoutDrawnRows requires that a forest predicts 10 if all labels are 10, however
// few rows are drawn, and that the shares of classes sum to 1.
func TestTreesWithoutDrawnRows(t *testing.T) {
	type sample struct {
		n int
		p Params
	}
	samples := []sample{{60, Params{Sampling: Subset, SampleShare: 0.01}}, {60, Params{SampleShare: 0.002}}}
	for _, n := range []int{1, 2, 3, 5} {
		samples = append(samples, sample{n, Params{}}, sample{n, Params{Sampling: Subset}})
	}
	for _, c := range samples {
		t.Run(fmt.Sprintf("%d rows, %v", c.n, c.p.Sampling), func(t *testing.T) {
			p := c.p
			p.LabelCol, p.NumTrees, p.Seed = "label", 300, 5
			m := modelOf(t, fewRows(c.n, func(int) float64 { return 10 }), p, 1)
			require.Equal(t, 10.0, m.Predict([]float64{0}))

			if c.n == 1 {
				return // Train refuses rows of a single class
			}
			p.Task = Classification
			if c.n == 60 {
				p.NumTrees = 30 // fewer trees, because they are large and with the smallest Memory every node takes a pass
			}
			table := fewRows(c.n, func(i int) float64 { return float64(i % 3) })
			m = modelOf(t, table, p, 1)
			want, err := m.Encode()
			require.NoError(t, err)
			p.Memory = 1
			got, err := modelOf(t, table, p, 3).Encode()
			require.NoError(t, err)
			require.Equal(t, string(want), string(got))
			shares := make([]float64, min(c.n, 3))
			for i := range c.n {
				require.True(t, m.PredictProbability(table.Row(i), shares))
				sum := 0.0
				for _, v := range shares {
					sum += v
				}
				require.InDelta(t, 1, sum, 1e-12)
			}
		})
	}
}

// TestForestOfLeaves trains on rows with equal features, so that every tree is a single leaf.
// The forest and its measures out of the bag then follow from the draws in closed form. A tree
// predicts the mean of the rows that it drew. If these rows have no weight, it predicts the
// mean of all rows, and no row is out of its bag. Rows of weight 0 are drawn too, so a bag with
// only such rows counts as empty.
func TestForestOfLeaves(t *testing.T) {
	const seed, trees = 11, 100
	for i, n := range []int{1, 2, 3, 5, 60} {
		for _, task := range []Task{Regression, Classification} {
			if n == 1 && task == Classification {
				continue // Train refuses rows of a single class
			}
			p := Params{LabelCol: "label", WeightCol: "weight", NumTrees: trees, Seed: seed, Task: task, OOBScore: true, Sampling: Bootstrap}
			if (i+int(task))%2 == 0 {
				p.Sampling = Subset
			}
			t.Run(fmt.Sprintf("%d rows, %v, %v", n, p.Sampling, task), func(t *testing.T) {
				if n == 60 {
					p.SampleShare = 0.01
				}
				table := fewRows(n, func(i int) float64 { return float64(i & 1) })
				for i := range n {
					table.X[i] = 0
					table.Weight[i] = float64((i + 1) % 3)
				}
				want, oob, empty := leaves(table, newSampler(p.withDefaults(seed)), trees)
				require.Positive(t, empty)
				m := everyWay(t, table, p)
				require.Equal(t, oob.rows, m.OutOfBag.Rows)
				if task == Regression {
					require.InDelta(t, want, m.Predict([]float64{0}), 1e-12)
					require.InDelta(t, oob.rmse, m.OutOfBag.Loss, 1e-12)
					return
				}
				shares := make([]float64, min(2, n))
				require.True(t, m.PredictProbability([]float64{0}, shares))
				require.InDeltaSlice(t, []float64{1 - want, want}[:len(shares)], shares, 1e-12)
				require.InDelta(t, oob.right, m.OutOfBag.Score, 1e-12)
				require.InDelta(t, oob.log, m.OutOfBag.Loss, 1e-12)
			})
		}
	}
}

// outOfLeaves has the measures out of the bag of a forest of single leaves.
type outOfLeaves struct {
	rows             int64
	right, log, rmse float64
}

// leaves returns, for labels of 0 and 1 and trees of one leaf, the mean prediction, the
// measures on rows out of the bag, and the number of bags without weight.
func leaves(table trial.Table, s *sampler, trees int) (mean float64, out outOfLeaves, empty int) {
	n := table.N
	sums, counts := make([]float64, n), make([]float64, n)
	for k := range trees {
		drawn := make([]uint8, n)
		for shard := range fewShards {
			s.draw(k, shard, drawn[n*shard/fewShards:n*(shard+1)/fewShards])
		}
		var w, y, allW, allY float64
		for i, times := range drawn {
			w += float64(times) * table.Weight[i]
			y += float64(times) * table.Weight[i] * table.Label[i]
			allW += table.Weight[i]
			allY += table.Weight[i] * table.Label[i]
		}
		if w == 0 {
			empty++
			mean += allY / allW / float64(trees)
			continue
		}
		mean += y / w / float64(trees)
		for i, times := range drawn {
			if times == 0 {
				sums[i] += y / w
				counts[i]++
			}
		}
	}
	weight := 0.0
	for i, c := range counts {
		if c == 0 {
			continue
		}
		out.rows++
		w, y, p := table.Weight[i], table.Label[i], sums[i]/c
		weight += w
		out.rmse += w * (p - y) * (p - y)
		of := y*p + (1-y)*(1-p)
		out.log -= w * math.Log(max(of, 0x1p-52))
		// If the shares are equal, the first class is predicted.
		if p > 0.5 == (y == 1) {
			out.right += w
		}
	}
	if weight == 0 {
		return mean, outOfLeaves{rows: out.rows}, empty
	}
	return mean, outOfLeaves{out.rows, out.right / weight, out.log / weight, math.Sqrt(out.rmse / weight)}, empty
}
