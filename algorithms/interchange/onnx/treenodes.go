package onnx

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// maxTable bounds the bytes of the tables of sets, which have a bit for each category and set.
// 128 MiB are enough for 16,000 sets of 65,535 categories. The tables are bounded because
// runtimes load the whole graph into memory.
const maxTable = 1 << 27

// setKey identifies a set of categories of a feature.
type setKey struct {
	feature int32
	words   string
}

// treeLists has the lists of numbers that are the attributes of an ensemble's node.
type treeLists struct {
	*builder
	e *tree.Ensemble
	// sets has, for each set, the index of the feature that is added for it.
	sets map[setKey]int64

	// The following lists have one element for each node. BRANCH_LT sends values below the
	// threshold to yes.
	treeIDs, nodeIDs, features, yes, no, missing []int64
	thresholds                                   []float32
	modes                                        []string
	// The following lists have one element for each leaf and output.
	leafTrees, leafNodes, outputs []int64
	weights                       []float64
}

func newTreeLists(b *builder, e *tree.Ensemble) *treeLists {
	return &treeLists{builder: b, e: e, sets: map[setKey]int64{}}
}

// key returns the key of the set of a categorical node.
func (t *treeLists) key(of *tree.Tree, n *tree.Node) setKey {
	words := of.Sets[n.Set : n.Set+n.SetWords]
	for len(words) > 0 && words[len(words)-1] == 0 {
		words = words[:len(words)-1]
	}
	text := make([]byte, 0, 4*len(words))
	for _, w := range words {
		text = binary.LittleEndian.AppendUint32(text, w)
	}
	return setKey{n.Feature, string(text)}
}

// withSets returns a tensor with the features and an additional feature for each set. Sets are
// ordered by feature and then by the first node that uses them.
func (t *treeLists) withSets(x string) string {
	of := make([][]setKey, len(t.e.Features))
	seen := map[setKey]bool{}
	for i := range t.e.Trees {
		tr := &t.e.Trees[i]
		for k := range tr.Nodes {
			if n := &tr.Nodes[k]; !n.Leaf() && n.Flags&tree.Categorical != 0 {
				if key := t.key(tr, n); !seen[key] {
					seen[key] = true
					of[n.Feature] = append(of[n.Feature], key)
				}
			}
		}
	}
	parts, width, size := []string{x}, int64(len(t.e.Features)), 0
	for f, keys := range of {
		if len(keys) == 0 {
			continue
		}
		words := 0
		bytes := (len(keys) + 7) / 8
		for k, key := range keys {
			words = max(words, len(key.words)/4)
			t.sets[key] = width + int64(k%bytes+k/bytes*bytes)
		}
		width += int64(8 * bytes)
		if size += (32*words + 1) * bytes; size > maxTable {
			t.fail("the tables of %d sets of categories have more than %d MiB, a bit for each category and set: train with fewer trees, leaves or categories", len(seen), maxTable>>20)
			return x
		}
		parts = append(parts, t.members(x, f, keys, 32*words, bytes))
	}
	return t.concat(parts)
}

// members returns a tensor with a number for each set in keys: 1 or more if the category of
// feature f is in the set, 0 if it is not, and NaN if the category is missing. All categories
// are below n. The table has a row for each category, whose bytes have a bit for each set. Set
// k uses bit k / bytes of byte k % bytes.
func (t *treeLists) members(x string, f int, keys []setKey, n, bytes int) string {
	value := t.gather(x, []int64{int64(f)})
	most, zero := t.single("most", []int64{1}, float32(n)), t.single("least", []int64{1}, 0)
	at := t.op("Where", []string{t.op("Less", []string{value, most}), value, most})
	at = t.op("Where", []string{t.op("GreaterOrEqual", []string{at, zero}), at, most})
	table := make([]byte, (n+1)*bytes) // the last row is used for values that are not categories
	for k, key := range keys {
		for c := range 8 * len(key.words) {
			if key.words[c/8]>>(c%8)&1 == 1 {
				table[c*bytes+k%bytes] |= 1 << (k / bytes)
			}
		}
	}
	rows := t.bytes("sets", []int64{int64(n + 1), int64(bytes)}, table)
	bits := t.bytes("bits", []int64{8, 1}, []byte{1, 2, 4, 8, 16, 32, 64, 128})
	in := t.op("Gather", []string{rows, t.cast(at, typeInt64)}, intAttr("axis", 0)) // rows × 1 × bytes
	in = t.op("BitwiseAnd", []string{in, bits})                                     // rows × 8 × bytes
	in = t.cast(t.op("Flatten", []string{in}, intAttr("axis", 1)), typeFloat)
	return t.op("Where", []string{t.op("IsNaN", []string{value}), t.single("none", []int64{1}, float32(math.NaN())), in})
}

// bytes adds an initializer of bytes and returns its name.
func (b *builder) bytes(want string, dims []int64, values []byte) string {
	made := tensor{name: b.local(want), dims: dims, elem: typeUint8, raw: values}
	b.initializers = append(b.initializers, made)
	return made.name
}

// single adds an initializer of float32 and returns its name.
func (b *builder) single(want string, dims []int64, values ...float32) string {
	name := b.local(want)
	made := tensor{name: name, dims: dims, elem: typeFloat}
	for _, v := range values {
		made.raw = binary.LittleEndian.AppendUint32(made.raw, bits32(v))
	}
	b.initializers = append(b.initializers, made)
	return name
}

// fill appends the nodes and leaves of all trees to the lists.
func (t *treeLists) fill() {
	count := make([]int, t.e.Outputs) // number of trees that add to each output
	for i := range t.e.Trees {
		tr := &t.e.Trees[i]
		for o := range count {
			if tr.Values != nil || int(tr.Output) == o {
				count[o]++
			}
		}
	}
	for i := range t.e.Trees {
		tr := &t.e.Trees[i]
		for k := range tr.Nodes {
			if err := t.node(i, k, tr, count); err != nil {
				t.builder.fail("tree %d: node %d: %w", i, k, err)
				return
			}
		}
	}
}

// node appends node k of tree i to the lists. count has the number of trees that add to each
// output.
func (t *treeLists) node(i, k int, tr *tree.Tree, count []int) error {
	n := &tr.Nodes[k]
	t.treeIDs, t.nodeIDs = append(t.treeIDs, int64(i)), append(t.nodeIDs, int64(k))
	if n.Leaf() {
		t.features, t.yes, t.no, t.missing = append(t.features, 0), append(t.yes, 0), append(t.no, 0), append(t.missing, 0)
		t.thresholds, t.modes = append(t.thresholds, 0), append(t.modes, "LEAF")
		return t.leaf(i, k, tr, count)
	}
	if n.Flags&tree.ZeroMissing != 0 {
		return fmt.Errorf("it takes zeros of feature %q as missing, which ONNX cannot express", t.e.Features[n.Feature])
	}
	feature, threshold, yes, no := int64(n.Feature), n.SingleThreshold(), n.Left, n.Right
	if n.Flags&tree.Categorical != 0 {
		// The added feature is below the threshold for categories outside the set.
		if feature, threshold = t.sets[t.key(tr, n)], 0.5; n.Flags&tree.SetRight == 0 {
			yes, no = n.Right, n.Left
		}
	}
	missing := int64(0)
	if tr.Left(int32(k), math.NaN(), t.e.Single) == (yes == n.Left) {
		missing = 1
	}
	t.features, t.thresholds = append(t.features, feature), append(t.thresholds, threshold)
	t.yes, t.no, t.missing = append(t.yes, int64(yes)), append(t.no, int64(no)), append(t.missing, missing)
	t.modes = append(t.modes, "BRANCH_LT")
	return nil
}

// leaf appends the values of node k of tree i, which is a leaf. If the ensemble averages, the
// value of output o is divided by count[o], the number of trees that add to this output.
func (t *treeLists) leaf(i, k int, tr *tree.Tree, count []int) error {
	first, last := int(tr.Output), int(tr.Output)
	if tr.Values != nil {
		first, last = 0, t.e.Outputs-1
	}
	for o := first; o <= last; o++ {
		v := tr.Nodes[k].Value
		if tr.Values != nil {
			v = tr.Values[k*t.e.Outputs+o]
		}
		if v *= tr.Weight; t.e.Average {
			v /= float64(count[o])
		}
		if math.Abs(v) > math.MaxFloat32 {
			return fmt.Errorf("its value is %v, which float32 does not hold", v)
		}
		t.leafTrees, t.leafNodes = append(t.leafTrees, int64(i)), append(t.leafNodes, int64(k))
		t.outputs, t.weights = append(t.outputs, int64(o)), append(t.weights, v)
	}
	return nil
}

func singles(values []float64) []float32 {
	made := make([]float32, len(values))
	for i, v := range values {
		made[i] = float32(v)
	}
	return made
}

// shared returns the attributes that the operators for regression and classification have in
// common.
func (t *treeLists) shared() []attribute {
	return []attribute{
		intsAttr("nodes_treeids", t.treeIDs), intsAttr("nodes_nodeids", t.nodeIDs), intsAttr("nodes_featureids", t.features),
		floatsAttr("nodes_values", t.thresholds), textsAttr("nodes_modes", t.modes),
		intsAttr("nodes_truenodeids", t.yes), intsAttr("nodes_falsenodeids", t.no),
		intsAttr("nodes_missing_value_tracks_true", t.missing),
	}
}

func floatsAttr(name string, v []float32) attribute {
	return attribute{name: name, kind: attrFloats, floats: v}
}

// margins returns the outputs of the ensemble, in the graph's type of numbers. The trees are
// added in float32, and then the base in the graph's type.
func (t *treeLists) margins(x string) string {
	base := t.constant("base", t.e.Base...)
	if len(t.e.Trees) == 0 {
		// Without trees, the result is the base, once for each row.
		none := t.op("IsNaN", []string{t.gather(x, []int64{0})})
		return t.op("Where", []string{none, base, base})
	}
	y := t.ml("TreeEnsembleRegressor", x, 1, append(t.shared(),
		intsAttr("target_treeids", t.leafTrees), intsAttr("target_nodeids", t.leafNodes), intsAttr("target_ids", t.outputs),
		floatsAttr("target_weights", singles(t.weights)), intAttr("n_targets", int64(t.e.Outputs)),
		textAttr("aggregate_function", "SUM"), textAttr("post_transform", "NONE"))...)[0]
	if t.real != typeFloat {
		y = t.cast(y, t.real)
	}
	return t.op("Add", []string{y, base})
}

// ml adds a node with an operator of ONNX-ML.
func (t *treeLists) ml(op, x string, outputs int, attributes ...attribute) []string {
	return t.builder.node(mlDomain, op, []string{x}, outputs, attributes...)
}

// probabilities adds nodes that compute the probabilities of the classes from the margins.
func (t *treeLists) probabilities(x string, l link) string {
	z := t.margins(x)
	switch l {
	case linkSigmoid:
		return t.concat([]string{t.op("Sigmoid", []string{t.op("Neg", []string{z})}), t.op("Sigmoid", []string{z})})
	case linkSoftmax:
		return t.op("Softmax", []string{z}, intAttr("axis", 1))
	}
	return z
}

// classifier returns the probabilities of the classes by ONNX-ML's operator. Other nodes
// determine the class, because the operator does not support all label types. The base is added
// to leaf values, because the specification does not define base_values for two classes, and
// runtimes differ.
func (t *treeLists) classifier(x string, l link) string {
	values, ok := t.withBase()
	if !ok {
		return t.probabilities(x, l)
	}
	post, k := "NONE", int64(t.e.Outputs)
	trees, nodes, classes, weights := t.leafTrees, t.leafNodes, t.outputs, singles(values)
	switch l {
	case linkSigmoid: // the margins of the two classes are −z and z
		post, k = "LOGISTIC", 2
		trees, nodes, classes, weights = nil, nil, nil, nil
		for i, v := range values {
			trees, nodes = append(trees, t.leafTrees[i], t.leafTrees[i]), append(nodes, t.leafNodes[i], t.leafNodes[i])
			classes, weights = append(classes, 0, 1), append(weights, float32(-v), float32(v))
		}
	case linkSoftmax:
		post = "SOFTMAX"
	}
	labels := make([]int64, k)
	for i := range labels {
		labels[i] = int64(i)
	}
	return t.ml("TreeEnsembleClassifier", x, 2, append(t.shared(),
		intsAttr("class_treeids", trees), intsAttr("class_nodeids", nodes), intsAttr("class_ids", classes),
		floatsAttr("class_weights", weights), intsAttr("classlabels_int64s", labels), textAttr("post_transform", post))...)[1]
}

// withBase returns the values of leaves, with the base of each output added to the leaves of
// its first tree. It returns false if an output has no tree.
func (t *treeLists) withBase() ([]float64, bool) {
	values := slices.Clone(t.weights)
	for o, base := range t.e.Base {
		first := slices.Index(t.outputs, int64(o))
		if first < 0 {
			return nil, false
		}
		for i := first; i < len(values) && t.leafTrees[i] == t.leafTrees[first]; i++ {
			if t.outputs[i] == int64(o) {
				values[i] += base
			}
			if math.Abs(values[i]) > math.MaxFloat32 {
				t.builder.fail("the value of a leaf is %v with the base, which float32 does not hold", values[i])
			}
		}
	}
	return values, true
}
