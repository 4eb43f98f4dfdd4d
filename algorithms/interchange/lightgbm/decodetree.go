package lightgbm

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// These are the bits of decision_type.
const (
	isCategorical = 1
	isDefaultLeft = 2
	missingShift  = 2 // the bits from this one on are the kind of missing values

	missingNone = 0
	missingZero = 1
	missingNaN  = 2
)

// block has the lines of a tree.
type block struct {
	values map[string]string
	lines  map[string]int
	err    error
	line   int // number of the line with the error
}

// tree reads the lines of a tree into t, and returns the line after them.
func (r *reader) tree(t *tree.Tree, features int) (string, error) {
	b := &block{values: map[string]string{}, lines: map[string]int{}}
	var line string
	for {
		var ok bool
		if line, ok = r.next(); !ok {
			break
		}
		name, value, found := strings.Cut(line, "=")
		if name == "Tree" || line == "end of trees" {
			break
		}
		if line == "" {
			continue
		}
		if strings.HasPrefix(line, "feature importances:") { // in files of versions before 2.2
			r.rest, r.ends = "", true
			break
		}
		if !found {
			return "", fmt.Errorf("%s is no line of a tree", shorten(line))
		}
		if b.lines[name] > 0 {
			return "", fmt.Errorf("%s occurs twice", shorten(name))
		}
		b.values[name], b.lines[name] = value, r.line
	}
	last := r.line
	if b.build(t, features); b.err != nil {
		if r.line = b.line; b.line == 0 {
			r.line = last
		}
		return "", b.err
	}
	return line, nil
}

func (b *block) fail(name, format string, a ...any) {
	if b.err == nil {
		b.err, b.line = fmt.Errorf(name+": "+format, a...), b.lines[name]
	}
}

// integers returns the n integers, each from least to most, in the line with the given name.
func (b *block) integers(name string, n int, least, most int64) []int64 {
	fields := b.fields(name, n)
	made := make([]int64, 0, len(fields))
	for i, f := range fields {
		v, err := strconv.ParseInt(f, 10, 64)
		if err != nil || v < least || v > most {
			b.fail(name, "number %d is %s: want an integer from %d to %d", i, shorten(f), least, most)
			return nil
		}
		made = append(made, v)
	}
	return made
}

// numbers returns the n numbers in the line with the given name.
func (b *block) numbers(name string, n int) []float64 {
	fields := b.fields(name, n)
	made := make([]float64, 0, len(fields))
	for i, f := range fields {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil && !(errors.Is(err, strconv.ErrRange) && !math.IsInf(v, 0)) {
			b.fail(name, "number %d is %s: want a number of float64", i, shorten(f))
			return nil
		}
		made = append(made, v)
	}
	return made
}

// fields divides a required line into n parts. It refuses an n for which the line is too short.
func (b *block) fields(name string, n int) []string {
	text, ok := b.values[name]
	if !ok {
		b.fail(name, "there is no line of the name")
	}
	if b.err != nil || n > len(text)/2+1 {
		b.fail(name, "it has %d characters for %d numbers", len(text), n)
		return nil
	}
	fields := strings.Fields(text)
	if len(fields) != n {
		b.fail(name, "it has %d numbers: want %d", len(fields), n)
		return nil
	}
	return fields
}

// known returns n numbers on which predictions do not depend. If the line is absent, they are
// zeros.
func (b *block) known(name string, n int) []float64 {
	if b.lines[name] == 0 || b.values[name] == "" {
		return make([]float64, n)
	}
	made := b.numbers(name, n)
	for i, v := range made {
		if v-v != 0 {
			made[i] = 0
		}
	}
	return made
}

// build makes the nodes of the tree: first the nodes with children, then the leaves, each in
// the order of the file. So splits and leaves keep the order of their numbers in the file.
func (b *block) build(t *tree.Tree, features int) {
	count := b.integers("num_leaves", 1, 1, math.MaxInt32)
	sets := b.integers("num_cat", 1, 0, math.MaxInt32)
	if linear, ok := b.values["is_linear"]; ok && linear != "0" {
		b.fail("is_linear", "the leaves hold linear models (linear_tree), which are not read")
	}
	if b.err != nil {
		return
	}
	leaves := int(count[0])
	values := b.numbers("leaf_value", leaves)
	if b.err != nil {
		return
	}
	covers, counts := b.known("leaf_weight", leaves), b.known("leaf_count", leaves)
	t.Nodes = make([]tree.Node, 2*leaves-1)
	for i := range values {
		if b.err == nil {
			n := &t.Nodes[leaves-1+i]
			n.Value, n.Cover, n.Count = values[i], max(0, covers[i]), int64(max(0, counts[i]))
		}
	}
	if leaves > 1 && b.err == nil {
		b.splits(t, leaves-1, features, int(sets[0]))
	}
}

// splits sets the n nodes with children.
func (b *block) splits(t *tree.Tree, n, features, sets int) {
	left := b.integers("left_child", n, int64(-n-1), int64(n-1))
	right := b.integers("right_child", n, int64(-n-1), int64(n-1))
	feature := b.integers("split_feature", n, 0, int64(features-1))
	threshold := b.numbers("threshold", n)
	kinds := make([]int64, n)
	if b.lines["decision_type"] > 0 {
		kinds = b.integers("decision_type", n, 0, missingNaN<<missingShift|isDefaultLeft|isCategorical)
	}
	gains, values := b.known("split_gain", n), b.known("internal_value", n)
	covers, counts := b.known("internal_weight", n), b.known("internal_count", n)
	var bounds []int64
	if sets > 0 {
		bounds = b.sets(t, sets)
	}
	if b.err != nil {
		return
	}
	child := func(v int64) int32 {
		if v < 0 { // a negative v is leaf −1−v
			v = int64(n) - 1 - v
		}
		return int32(v)
	}
	for i := range n {
		node := &t.Nodes[i]
		node.Left, node.Right, node.Feature = child(left[i]), child(right[i]), int32(feature[i])
		node.Gain, node.Value, node.Cover, node.Count = gains[i], values[i], max(0, covers[i]), int64(max(0, counts[i]))
		b.decision(node, i, kinds[i], threshold[i], bounds)
	}
	if b.err == nil {
		b.order(t, n)
	}
}

// decision sets how node i sends rows to its children.
func (b *block) decision(node *tree.Node, i int, kind int64, threshold float64, bounds []int64) {
	if kind&isCategorical != 0 {
		// NaN is in no set. It goes right, regardless of the bits for missing values.
		node.Flags = tree.Categorical
		if threshold != math.Trunc(threshold) || threshold < 0 || threshold >= float64(len(bounds)-1) {
			b.fail("threshold", "node %d has set %v: there are %d", i, threshold, max(0, len(bounds)-1))
			return
		}
		from, to := bounds[int(threshold)], bounds[int(threshold)+1]
		node.Set, node.SetWords = int32(from), int32(to-from)
		return
	}
	if threshold != threshold {
		b.fail("threshold", "that of node %d is NaN", i)
		return
	}
	if kind&isDefaultLeft != 0 {
		node.Flags |= tree.DefaultLeft
	}
	switch kind >> missingShift {
	case missingNone:
		node.Flags |= tree.NaNIsZero
	case missingZero:
		node.Flags |= tree.ZeroMissing
	}
	// In LightGBM, values up to and including the threshold go left.
	if math.IsInf(threshold, 1) { // all values go left
		node.Left, node.Right, node.Flags = node.Right, node.Left, node.Flags^tree.DefaultLeft
		node.Threshold = math.Inf(-1)
		return
	}
	node.Threshold = math.Nextafter(threshold, math.Inf(1))
}

// sets reads the sets of categories. It returns, for each set, the index of its first word
// among all words.
func (b *block) sets(t *tree.Tree, sets int) []int64 {
	bounds := b.integers("cat_boundaries", sets+1, 0, math.MaxInt32)
	if b.err != nil {
		return nil
	}
	for i, v := range bounds {
		if i == 0 && v != 0 || i > 0 && v < bounds[i-1] {
			b.fail("cat_boundaries", "number %d is %d: they ascend from 0", i, v)
			return nil
		}
	}
	words := b.integers("cat_threshold", int(bounds[sets]), 0, math.MaxUint32)
	for _, v := range words {
		t.Sets = append(t.Sets, uint32(v))
	}
	return bounds
}

// order moves children after their parents if the file has a child before its parent. It
// refuses cycles and nodes with several parents.
func (b *block) order(t *tree.Tree, n int) {
	seen := make([]bool, len(t.Nodes))
	seen[0] = true
	order := append(make([]int32, 0, len(t.Nodes)), 0)
	sorted := true
	for at := 0; at < len(order); at++ {
		node := &t.Nodes[order[at]]
		if int(order[at]) >= n {
			continue
		}
		for _, c := range [2]int32{node.Left, node.Right} {
			if seen[c] {
				name := "node " + strconv.Itoa(int(c))
				if int(c) >= n {
					name = "leaf " + strconv.Itoa(int(c)-n)
				}
				b.fail("left_child", "%s is a child of node %d, and has a parent already or is the root", name, order[at])
				return
			}
			seen[c] = true
			sorted = sorted && c > order[at]
			order = append(order, c)
		}
	}
	switch {
	case len(order) < len(t.Nodes):
		b.fail("left_child", "%d of %d nodes and leaves cannot be reached from the root", len(t.Nodes)-len(order), len(t.Nodes))
		return
	case sorted:
		return
	}
	number := make([]int32, len(order))
	for i, from := range order {
		number[from] = int32(i)
	}
	nodes := make([]tree.Node, len(order))
	for i, from := range order {
		nodes[i] = t.Nodes[from]
		if int(from) < n {
			nodes[i].Left, nodes[i].Right = number[nodes[i].Left], number[nodes[i].Right]
		}
	}
	t.Nodes = nodes
}

// pandas reads the categories of a data frame's columns, in the order of the columns. If there
// are as many lists as categorical features, they become the names of the features' categories.
func (m *Model) pandas(text string) error {
	var columns [][]any
	if err := json.Unmarshal([]byte(text), &columns); err != nil {
		return fmt.Errorf("pandas_categorical: %w", err)
	}
	at := categorical(m.Ranges)
	if len(columns) == 0 || len(columns) != len(at) {
		return nil
	}
	m.Ensemble.Categories, m.Bare = make([][]string, len(m.Ensemble.Features)), nil
	for i, column := range columns {
		names, quoted := make([]string, 0, len(column)), len(column) == 0
		for _, v := range column {
			switch v := v.(type) {
			case float64:
				names = append(names, strconv.FormatFloat(v, 'f', -1, 64))
			case bool:
				names = append(names, strconv.FormatBool(v))
			default:
				names, quoted = append(names, fmt.Sprint(v)), true
			}
		}
		if m.Ensemble.Categories[at[i]] = names; !quoted {
			if m.Bare == nil {
				m.Bare = make([]bool, len(m.Ensemble.Features))
			}
			m.Bare[at[i]] = true
		}
	}
	return nil
}
