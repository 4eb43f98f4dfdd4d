package tree

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestValidateRefuses requires an error for every kind of invalid ensemble that Validate can
// find.
func TestValidateRefuses(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for want, spoil := range map[string]func(e *Ensemble, t *Tree, n []Node){
		"the ensemble has 0 outputs, and needs at least 1":                               func(e *Ensemble, _ *Tree, _ []Node) { e.Outputs = 0 },
		"the ensemble has 2 outputs but a base for 1":                                    func(e *Ensemble, _ *Tree, _ []Node) { e.Base = e.Base[:1] },
		"the ensemble has 2 features but categories for 1":                               func(e *Ensemble, _ *Tree, _ []Node) { e.Categories = e.Categories[:1] },
		"the base of output 1 is NaN, which is not finite":                               func(e *Ensemble, _ *Tree, _ []Node) { e.Base[1] = nan },
		"tree 0: it has no nodes":                                                        func(_ *Ensemble, t *Tree, _ []Node) { t.Nodes = nil },
		"tree 0: its weight is +Inf":                                                     func(_ *Ensemble, t *Tree, _ []Node) { t.Weight = inf },
		"tree 0: it adds to output 2 of 2":                                               func(_ *Ensemble, t *Tree, _ []Node) { t.Output = 2 },
		"tree 0: it adds to output -1 of 2":                                              func(_ *Ensemble, t *Tree, _ []Node) { t.Output = -1 },
		"tree 1: it has values for all outputs, and names output 1":                      func(e *Ensemble, _ *Tree, _ []Node) { e.Trees[1].Output = 1 },
		"tree 1: it has 3 values for 1 nodes and 2 outputs":                              func(e *Ensemble, _ *Tree, _ []Node) { e.Trees[1].Values = make([]float64, 3) },
		"tree 1: it has 0 values for 1 nodes and 2 outputs":                              func(e *Ensemble, _ *Tree, _ []Node) { e.Trees[1].Values = []float64{} },
		"tree 1: node 0: the value for output 1 is NaN":                                  func(e *Ensemble, _ *Tree, _ []Node) { e.Trees[1].Values[1] = nan },
		"tree 0: node 0: its child 0 does not follow it among 5 nodes":                   func(_ *Ensemble, _ *Tree, n []Node) { n[0].Right = 0 },
		"tree 0: node 1: its child 1 does not follow it among 5 nodes":                   func(_ *Ensemble, _ *Tree, n []Node) { n[1].Left = 1 },
		"tree 0: node 1: its child 5 does not follow it among 5 nodes":                   func(_ *Ensemble, _ *Tree, n []Node) { n[1].Right = 5 },
		"tree 0: node 0: its child -1 does not follow it among 5 nodes":                  func(_ *Ensemble, _ *Tree, n []Node) { n[0].Left = -1 },
		"tree 0: node 1: its child 4 has another parent too, or is both of its children": func(_ *Ensemble, _ *Tree, n []Node) { n[1].Right = 4 },
		"tree 0: node 0: its child 4 has another parent too, or is both of its children": func(_ *Ensemble, _ *Tree, n []Node) { n[0].Left = 4 },
		"tree 0: node 2 is not the child of a node before it":                            func(_ *Ensemble, _ *Tree, n []Node) { n[1] = Node{} },
		"tree 0: node 3: it has a right child, 4, but no left one":                       func(_ *Ensemble, _ *Tree, n []Node) { n[3].Right = 4 },
		"tree 0: node 0: it splits on feature 2 of 2":                                    func(_ *Ensemble, _ *Tree, n []Node) { n[0].Feature = 2 },
		"tree 0: node 0: it splits on feature -1 of 2":                                   func(_ *Ensemble, _ *Tree, n []Node) { n[0].Feature = -1 },
		"tree 0: node 0: its threshold 0.1 is not a float32 value":                       func(_ *Ensemble, _ *Tree, n []Node) { n[0].Threshold = 0.1 },
		"tree 0: node 0: its threshold is NaN":                                           func(_ *Ensemble, _ *Tree, n []Node) { n[0].Threshold = nan },
		"tree 0: node 1: its set is 2 words from word 1 of 2":                            func(_ *Ensemble, _ *Tree, n []Node) { n[1].SetWords = 2 },
		"tree 0: node 1: its set is 2147483647 words from word 2147483647 of 2":          func(_ *Ensemble, _ *Tree, n []Node) { n[1].Set, n[1].SetWords = math.MaxInt32, math.MaxInt32 },
		"tree 0: node 1: its set is -1 words from word 1 of 2":                           func(_ *Ensemble, _ *Tree, n []Node) { n[1].SetWords = -1 },
		"tree 0: node 1: its set is 1 words from word -1 of 2":                           func(_ *Ensemble, _ *Tree, n []Node) { n[1].Set = -1 },
		"tree 0: node 3: it has unknown flags 0x20":                                      func(_ *Ensemble, _ *Tree, n []Node) { n[3].Flags = 32 },
		"tree 0: node 3: its value is NaN, which is not finite":                          func(_ *Ensemble, _ *Tree, n []Node) { n[3].Value = nan },
		"tree 0: node 3: its gain is -Inf, which is not finite":                          func(_ *Ensemble, _ *Tree, n []Node) { n[3].Gain = -inf },
		"tree 0: node 3: its cover is +Inf, which is not a number of 0 or more":          func(_ *Ensemble, _ *Tree, n []Node) { n[3].Cover = inf },
		"tree 0: node 3: its cover is -1, which is not a number of 0 or more":            func(_ *Ensemble, _ *Tree, n []Node) { n[3].Cover = -1 },
		"tree 0: node 3: its count is -1":                                                func(_ *Ensemble, _ *Tree, n []Node) { n[3].Count = -1 },
	} {
		e := one()
		require.NoError(t, e.Validate())
		spoil(e, &e.Trees[0], e.Trees[0].Nodes)
		require.ErrorContains(t, e.Validate(), "tree: "+want)
		require.Panics(t, func() { e.Scorer() }, want)
		_, err := e.Explainer(ExplainOptions{})
		require.ErrorContains(t, err, want)
	}
}

// TestDeep requires that all functions accept a tree of the depth MaxDepth, and that a deeper
// tree is refused.
func TestDeep(t *testing.T) {
	require.ErrorContains(t, chain(MaxDepth+1).Validate(), "it is 65536 splits below the root, and splits")
	e := chain(MaxDepth)
	s := e.Scorer()
	x, err := e.Explainer(ExplainOptions{})
	require.NoError(t, err)
	out, values := []float64{0}, []float64{0, 0}
	for _, v := range []float64{-1, 1000.5, MaxDepth + 5} {
		want := math.Min(math.Floor(v)+1, MaxDepth)
		s.Scores([]float64{v}, out)
		require.Equal(t, []float64{want}, out)
		x.Values([]float64{v}, values)
		require.InEpsilon(t, want+1, total(values)+1, 1e-9)
	}
}

// TestTooLongToExplain requires an error for a tree with a very long path on which all splits
// are on different features.
func TestTooLongToExplain(t *testing.T) {
	e := chain(20000)
	e.Features = make([]string, 20000)
	for i := range e.Trees[0].Nodes {
		e.Trees[0].Nodes[i].Feature = int32(i / 2 % 20000)
	}
	require.NoError(t, e.Validate())
	_, err := e.Explainer(ExplainOptions{})
	require.ErrorContains(t, err, "tree 0 has paths of 20000 splits on 20000 features, too long to explain")
}
