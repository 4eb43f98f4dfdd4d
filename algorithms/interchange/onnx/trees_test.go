package onnx

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// treeOperators evaluates the operators for trees, by the definitions of ai.onnx.ml 3.
func treeOperators(t testing.TB, n node, x array) []array {
	if n.op == "Flatten" {
		require.EqualValues(t, 1, attributeOf(n, "axis").i)
		return []array{numbersArray([]int{x.dims[0], x.size() / x.dims[0]}, x.num...)}
	}
	prefix, k := "target", 0
	if n.op == "TreeEnsembleClassifier" {
		prefix, k = "class", len(attributeOf(n, "classlabels_int64s").ints)
	} else {
		k = int(attributeOf(n, "n_targets").i)
		require.Equal(t, "SUM", attributeOf(n, "aggregate_function").s)
	}
	ids, nodes := attributeOf(n, "nodes_treeids").ints, attributeOf(n, "nodes_nodeids").ints
	at := map[[2]int64]int{}
	trees := 0
	for i := range ids {
		at[[2]int64{ids[i], nodes[i]}] = i
		trees = max(trees, int(ids[i])+1)
	}
	d := x.dims[1]
	made := array{dims: []int{x.dims[0], k}}
	for r := range x.dims[0] {
		row := x.num[r*d : (r+1)*d]
		sums := make([]float64, k)
		if base := attributeOf(n, "base_values"); base != nil {
			for o, v := range base.floats {
				sums[o] = float64(v)
			}
		}
		for tr := range trees {
			leaf := nodes[walk(t, n, at, int64(tr), row)]
			for i, id := range attributeOf(n, prefix+"_treeids").ints {
				if id == int64(tr) && attributeOf(n, prefix+"_nodeids").ints[i] == leaf {
					sums[attributeOf(n, prefix+"_ids").ints[i]] += float64(attributeOf(n, prefix+"_weights").floats[i])
				}
			}
		}
		made.num = append(made.num, sums...)
	}
	switch attributeOf(n, "post_transform").s {
	case "LOGISTIC":
		for i, v := range made.num {
			made.num[i] = 1 / (1 + math.Exp(-v))
		}
	case "SOFTMAX":
		made = softmax(made)
	}
	if n.op == "TreeEnsembleClassifier" {
		return []array{numbersArray([]int{x.dims[0]}, make([]float64, x.dims[0])...), made}
	}
	return []array{made}
}

// walk returns the index, in the lists of the node, of the leaf that a row reaches.
func walk(t testing.TB, n node, at map[[2]int64]int, tree int64, row []float64) int {
	i := at[[2]int64{tree, 0}]
	for steps := 0; attributeOf(n, "nodes_modes").strings[i] != "LEAF"; steps++ {
		require.Less(t, steps, 1000)
		v := row[attributeOf(n, "nodes_featureids").ints[i]]
		next := "nodes_falsenodeids"
		if v < float64(attributeOf(n, "nodes_values").floats[i]) || math.IsNaN(v) && attributeOf(n, "nodes_missing_value_tracks_true").ints[i] == 1 {
			next = "nodes_truenodeids"
		}
		i = at[[2]int64{tree, attributeOf(n, next).ints[i]}]
	}
	return i
}

// grownModels returns trained models of trees, whose features are numbers, bools, text and
// integer categories.
func grownModels(t testing.TB) map[string]model.Model {
	all := []string{"age", "fare", "sex", "deck", "alone"}
	boosted := map[string]gbdt.Params{
		"squared":  {LabelCol: "price", CategoricalCols: []string{"deck"}},
		"tweedie":  {LabelCol: "degree", Objective: gbdt.Tweedie},
		"logistic": {LabelCol: "lived", Objective: gbdt.Logistic},
		"softmax":  {LabelCol: "class", Objective: gbdt.Softmax},
		"two":      {LabelCol: "lived", Objective: gbdt.Softmax},
	}
	forests := map[string]forest.Params{
		"forest-classes": {LabelCol: "class", NumTrees: 4, MaxDepth: 4, Task: forest.Classification},
		"forest-two":     {LabelCol: "lived", NumTrees: 4, MaxDepth: 4, Task: forest.Classification},
		"forest-numbers": {LabelCol: "price", NumTrees: 4, MaxDepth: 4},
	}
	r := trial.Run(t, func(b *engine.Builder) {
		rows := operators.FromSlice(b, trial.Passengers(120))
		for _, name := range slices.Sorted(maps.Keys(boosted)) {
			p := boosted[name]
			p.FeatureCols, p.NumTrees, p.MaxDepth = all, 6, 3
			engine.Collect(gbdt.Train(rows, p), name)
		}
		for _, name := range slices.Sorted(maps.Keys(forests)) {
			p := forests[name]
			p.FeatureCols = all
			engine.Collect(forest.Train(rows, p), name)
		}
	})
	models := map[string]model.Model{}
	for name := range boosted {
		m, err := gbdt.ModelOf(r, name)
		require.NoError(t, err)
		models[name] = m
	}
	for name := range forests {
		m, err := forest.ModelOf(r, name)
		require.NoError(t, err)
		models[name] = m
	}
	return models
}

// TestTrees requires that each graph gives the same results as its model, except for sums in
// float32, and that the imported model has the same model file.
func TestTrees(t *testing.T) {
	for name, m := range grownModels(t) {
		for _, write := range []func(model.Model) ([]byte, error){Export, ExportSingle} {
			data, err := write(m)
			require.NoError(t, err, name)
			f, err := decodeFile(data)
			require.NoError(t, err, name)
			requireSame(t, m, f, applied(), 1e-6)
			back, err := Import(data)
			require.NoError(t, err, name)
			again, err := write(back)
			require.NoError(t, err, name)
			require.Equal(t, data, again, name)
		}
		if *rewrite {
			writeRun(t, "trees-"+name, m)
		}
	}
}

// drawn returns a random ensemble with every kind of node.
func drawn() *tree.Ensemble {
	leaf := func(v float64) tree.Node { return tree.Node{Value: v} }
	return &tree.Ensemble{Features: []string{"a", "b"}, Outputs: 2, Base: []float64{0.5, -1}, Trees: []tree.Tree{
		{Weight: 0.5, Nodes: []tree.Node{{Left: 2, Right: 1, Threshold: 0.1, Flags: tree.DefaultLeft}, leaf(1), leaf(2)}},
		{Weight: 1, Output: 1, Sets: []uint32{6, 0, 1, 0}, Nodes: []tree.Node{
			{Left: 1, Right: 2, Feature: 1, SetWords: 4, Flags: tree.Categorical | tree.DefaultLeft},
			{Left: 3, Right: 4, Feature: 1, SetWords: 1, Flags: tree.Categorical | tree.SetRight},
			{Left: 5, Right: 6, Feature: 1, Flags: tree.Categorical | tree.SetRight | tree.NaNIsZero},
			leaf(3), leaf(4), leaf(5), leaf(6),
		}},
		{Weight: 1, Values: []float64{7, 8}, Nodes: []tree.Node{leaf(0)}},
		{Weight: 1, Nodes: []tree.Node{{Left: 1, Right: 2, Threshold: math.Inf(-1), Flags: tree.DefaultLeft}, leaf(9), leaf(10)}},
	}}
}

// outputsOf returns, for rows, the outputs of a graph that computes only the margins of an
// ensemble.
func outputsOf(t testing.TB, e *tree.Ensemble, rows []float64) []float64 {
	b := newBuilder(false)
	b.input(model.Input{Column: "x", Type: "vector[2]"})
	b.stage = "trees"
	l := newTreeLists(b, e)
	x := l.withSets(b.float32s(b.numbers("x", 2)))
	l.fill()
	b.output("y", l.margins(x), b.real, e.Outputs, "vector")
	b.finish()
	require.NoError(t, b.err)
	b.graph.name = "trees"
	f := &file{irVersion: irVersion, producer: producer, version: formatVersion, graph: b.graph, opsets: []opset{{"", coreVersion}, {mlDomain, mlVersion}}}
	made := evaluate(t, f, map[string]array{"x": numbersArray([]int{len(rows) / 2, 2}, rows...)})["y"].num
	if dir := os.Getenv("RUNS"); *rewrite && dir != "" {
		r := run{File: f.encode(), Inputs: []model.Input{{Column: "x", Type: "vector[2]"}}, Outputs: map[string][]any{}}
		for _, v := range made {
			r.Outputs["y"] = append(r.Outputs["y"], v)
		}
		for i := 0; i < len(rows); i += 2 {
			r.Rows = append(r.Rows, map[string]any{"x": []any{jsonNumber(rows[i]), jsonNumber(rows[i+1])}})
		}
		text, err := json.Marshal(r)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("trees-drawn-%v-%d-%d.json", e.Average, len(e.Trees), len(rows))), text, 0o644))
	}
	return made
}

// jsonNumber returns a number in the form that check.py can read.
func jsonNumber(v float64) any {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 0):
		return fmt.Sprint(v)
	}
	return v
}

// TestWaysThroughTrees requires that rows reach the same leaves as in package tree, whatever
// the flags of nodes.
func TestWaysThroughTrees(t *testing.T) {
	for _, average := range []bool{false, true} {
		e := drawn()
		e.Average = average
		var rows, want []float64
		for _, a := range []float64{math.NaN(), 0, 0.1, float64(float32(0.1)), 0.2, math.Inf(1), math.Inf(-1)} {
			for _, c := range []float64{math.NaN(), -1, 0, 1, 2, 2.5, 3, 31, 64, 65, 1e9, math.Inf(1)} {
				row := []float64{float64(float32(a)), c}
				rows = append(rows, row...)
				sums := make([]float64, 2)
				counts := []float64{0, 0}
				for i := range e.Trees {
					tr := &e.Trees[i]
					at := tr.Leaf(row, false)
					for o := range sums {
						if tr.Values != nil {
							sums[o], counts[o] = sums[o]+tr.Values[o], counts[o]+1
						} else if int(tr.Output) == o {
							sums[o], counts[o] = sums[o]+tr.Weight*tr.Nodes[at].Value, counts[o]+1
						}
					}
				}
				for o := range sums {
					if average {
						sums[o] /= counts[o]
					}
					want = append(want, sums[o]+e.Base[o])
				}
			}
		}
		require.InDeltaSlice(t, want, outputsOf(t, e, rows), 1e-6)
	}
	e := drawn()
	e.Trees = nil
	require.Equal(t, []float64{0.5, -1, 0.5, -1}, outputsOf(t, e, []float64{1, 2, math.NaN(), 3}))
}

// TestSetsOfManyCategories requires correct results with thousands of categories, and with more
// sets than bits in a byte.
func TestSetsOfManyCategories(t *testing.T) {
	const categories, trees = 3000, 45
	r := rand.New(rand.NewPCG(1, 2))
	e := &tree.Ensemble{Features: []string{"a", "b"}, Outputs: 1, Base: []float64{1}}
	for i := range trees {
		tr := tree.Tree{Weight: 1, Sets: make([]uint32, (categories+31)/32), Nodes: []tree.Node{
			{Left: 1, Right: 2, Feature: int32(i % 2), SetWords: (categories + 31) / 32, Flags: tree.Categorical}, {Value: r.NormFloat64()}, {Value: r.NormFloat64()}}}
		for k := range tr.Sets {
			tr.Sets[k] = r.Uint32() & r.Uint32()
		}
		if i%3 == 0 {
			tr.Nodes[0].Flags |= tree.SetRight | tree.DefaultLeft
		}
		e.Trees = append(e.Trees, tr)
	}
	rows := []float64{math.NaN(), 0, 2999, 3000, 70000, -1}
	for range 120 {
		rows = append(rows, float64(r.IntN(categories)))
	}
	var want []float64
	for i := 0; i < len(rows); i += 2 {
		sum := e.Base[0]
		for k := range e.Trees {
			sum += e.Trees[k].Nodes[e.Trees[k].Leaf(rows[i:i+2], false)].Value
		}
		want = append(want, sum)
	}
	require.InDeltaSlice(t, want, outputsOf(t, e, rows), 1e-5)
}

// TestTreesNotExpressible requires an error for everything about trees that graphs cannot
// express.
func TestTreesNotExpressible(t *testing.T) {
	for want, change := range map[string]func(e *tree.Ensemble){
		"tree 0: node 0: it takes zeros of feature \"a\"": func(e *tree.Ensemble) { e.Trees[0].Nodes[0].Flags = tree.ZeroMissing },
		"tree 0: node 1: its value is 1e+300":             func(e *tree.Ensemble) { e.Trees[0].Nodes[1].Value, e.Trees[0].Weight = 1e300, 1 },
		"tables of 3 sets of categories have more": func(e *tree.Ensemble) {
			e.Trees[1].Sets = make([]uint32, maxTable/32)
			e.Trees[1].Sets[maxTable/32-1], e.Trees[1].Nodes[0].SetWords = 1, maxTable/32
			e.Trees[1].Sets[0] = 6
		},
		"its child 9 does not follow it":     func(e *tree.Ensemble) { e.Trees[0].Nodes[0].Left = 9 },
		"it has 2 outputs, and predicts one": func(e *tree.Ensemble) {},
	} {
		g := grown{ensemble: drawn(), reads: []model.Input{{Column: "x", Type: "vector[2]"}}, dim: 2}
		change(g.ensemble)
		if want != "it has 2 outputs, and predicts one" {
			g.classes = []string{"0", "1"}
		}
		b := newBuilder(false)
		b.input(g.reads[0])
		b.stage = "trees"
		b.trees(&g)
		require.ErrorContains(t, b.err, want)
	}
}
