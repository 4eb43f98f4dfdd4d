package tree

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// shape describes a kind of random ensembles.
type shape struct {
	features, outputs, trees int
	leaves                   int // largest number of leaves of a tree
	single, average          bool
	categorical              bool // some nodes are categorical
	odd                      bool // some nodes have the flags ZeroMissing and NaNIsZero
	values                   bool // trees have values for all outputs
	cuts                     int  // largest number of distinct thresholds of a feature
}

// random returns a random ensemble, made by splitting randomly chosen leaves. The covers of
// children add up to the cover of their parent, and all nodes have values.
func random(seed uint64, s shape) *Ensemble {
	r := rand.New(rand.NewPCG(seed, 1))
	e := &Ensemble{Outputs: s.outputs, Single: s.single, Average: s.average}
	for f := range s.features {
		e.Features = append(e.Features, fmt.Sprintf("f%d", f))
	}
	for range s.outputs {
		e.Base = append(e.Base, r.NormFloat64())
	}
	for t := range s.trees {
		tree := Tree{Weight: 1}
		if r.IntN(4) == 0 {
			tree.Weight = 0.3 + r.Float64()
		}
		tree.Nodes = []Node{{Value: r.NormFloat64(), Cover: 1000, Count: 1000}}
		for open := []int32{0}; len(open) <= r.IntN(s.leaves)+s.leaves/2; {
			i := r.IntN(len(open))
			s.split(r, &tree, open[i])
			left := tree.Nodes[open[i]].Left
			open[i] = left
			open = append(open, left+1)
		}
		if s.values {
			for range len(tree.Nodes) * s.outputs {
				tree.Values = append(tree.Values, r.NormFloat64())
			}
		} else {
			tree.Output = int32(t % s.outputs)
		}
		e.Trees = append(e.Trees, tree)
	}
	return e
}

// split turns a leaf into a node with two children.
func (s shape) split(r *rand.Rand, t *Tree, at int32) {
	n := t.Nodes[at]
	n.Feature = int32(r.IntN(s.features))
	n.Left, n.Right = int32(len(t.Nodes)), int32(len(t.Nodes)+1)
	n.Gain = math.Abs(r.NormFloat64())
	if r.IntN(2) == 0 {
		n.Flags |= DefaultLeft
	}
	if s.odd {
		n.Flags |= [...]Flags{0, ZeroMissing, NaNIsZero, ZeroMissing | NaNIsZero}[r.IntN(4)]
	}
	if s.categorical && r.IntN(3) == 0 {
		n.Flags |= Categorical
		if r.IntN(2) == 0 {
			n.Flags |= SetRight
		}
		n.Set, n.SetWords = int32(len(t.Sets)), int32(r.IntN(3))
		for range n.SetWords {
			t.Sets = append(t.Sets, r.Uint32())
		}
	} else {
		n.Threshold = math.Round(r.NormFloat64()*float64(s.cuts)/4) / float64(s.cuts) * 4
		if r.IntN(50) == 0 {
			n.Threshold = math.Inf(r.IntN(2)*2 - 1)
		}
		if s.single {
			n.Threshold = float64(float32(n.Threshold))
		}
	}
	t.Nodes[at] = n
	share := r.Float64()
	left := Node{Value: r.NormFloat64(), Cover: n.Cover * share, Count: int64(float64(n.Count) * share)}
	t.Nodes = append(t.Nodes, left, Node{Value: r.NormFloat64(), Cover: n.Cover - left.Cover, Count: n.Count - left.Count})
}

// randomRow sets row to values that are often equal to thresholds or categories, or that are
// special cases: missing, zero, almost zero, infinite or huge.
func randomRow(r *rand.Rand, s shape, row []float64) {
	for f := range row {
		switch r.IntN(12) {
		case 0:
			row[f] = math.NaN()
		case 1:
			row[f] = [...]float64{0, math.Copysign(0, -1), 1e-36, -1e-35, 2e-35, math.Inf(1), math.Inf(-1), 1e300, -1e300, math.MaxInt32, math.MaxInt32 + 1, 1e-320}[r.IntN(12)]
		case 2, 3:
			row[f] = float64(r.IntN(110)-10) + float64(r.IntN(2))/4
		case 4, 5, 6:
			row[f] = math.Round(r.NormFloat64()*float64(s.cuts)/4) / float64(s.cuts) * 4
		default:
			row[f] = r.NormFloat64()
		}
	}
}

// plainScores returns the scores of a row, computed directly from the definition.
func plainScores(e *Ensemble, row []float64) []float64 {
	sums := make([]float64, e.Outputs)
	trees := make([]float64, e.Outputs)
	if !e.Average {
		copy(sums, e.Base)
	}
	for t := range e.Trees {
		tree := &e.Trees[t]
		leaf := tree.Leaf(row, e.Single)
		for o := range sums {
			switch {
			case tree.Values != nil:
				sums[o] += float64(tree.Weight * tree.Values[int(leaf)*e.Outputs+o])
				trees[o]++
			case int(tree.Output) == o:
				sums[o] += float64(tree.Weight * tree.Nodes[leaf].Value)
				trees[o]++
			}
		}
	}
	if e.Average {
		for o := range sums {
			if trees[o] > 0 {
				sums[o] /= trees[o]
			}
			sums[o] = e.Base[o] + sums[o]
		}
	}
	return sums
}

// shapes has a shape for each case that the layouts of a Scorer distinguish.
var shapes = map[string]shape{
	"small":      {features: 5, outputs: 1, trees: 7, leaves: 6, cuts: 8, single: true},
	"depth":      {features: 28, outputs: 1, trees: 40, leaves: 64, cuts: 64, single: true},
	"double":     {features: 28, outputs: 1, trees: 40, leaves: 64, cuts: 64},
	"deep":       {features: 9, outputs: 1, trees: 4, leaves: 700, cuts: 300},
	"deepSingle": {features: 300, outputs: 1, trees: 4, leaves: 700, cuts: 300, single: true},
	"leaves":     {features: 4, outputs: 3, trees: 20, leaves: 1, cuts: 4},
	"stumps":     {features: 400, outputs: 3, trees: 300, leaves: 2, cuts: 4, single: true},
	"classes":    {features: 6, outputs: 5, trees: 50, leaves: 31, cuts: 16, single: true},
	"forest":     {features: 6, outputs: 3, trees: 20, leaves: 100, cuts: 16, values: true, average: true},
	"mean":       {features: 6, outputs: 2, trees: 21, leaves: 10, cuts: 16, average: true},
	"odd":        {features: 6, outputs: 1, trees: 30, leaves: 31, cuts: 16, odd: true},
	"sets":       {features: 6, outputs: 1, trees: 30, leaves: 31, cuts: 16, categorical: true, single: true},
	"everything": {features: 12, outputs: 2, trees: 30, leaves: 200, cuts: 16, categorical: true, odd: true},
}

// valid returns a random ensemble of the given shape, after checking that it is valid.
func valid(t testing.TB, seed uint64, s shape) *Ensemble {
	e := random(seed, s)
	require.NoError(t, e.Validate())
	return e
}

// sameBits requires that two ensembles are the same, bit for bit. A nil slice equals an empty
// one.
func sameBits(t testing.TB, want, got *Ensemble, about ...any) {
	t.Helper()
	require.Equal(t, fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got), about...)
}
