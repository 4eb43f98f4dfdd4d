package tree

import (
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// MaxDepth is the largest allowed depth of a tree, that is, the number of splits above a leaf.
const MaxDepth = 1 << 16

// Validate checks everything on which the other functions of this package rely. For a valid
// ensemble, none of them panics, loops for ever or reads beyond a slice. Validate requires:
//
//   - there is at least one output, a base for each output, and an entry for each feature in
//     Categories and Seen unless these are nil;
//   - every tree has at least one node; children come after their parents, and every node
//     except the root is the child of exactly one other node, so that there are no cycles and
//     no unreachable nodes;
//   - trees are at most MaxDepth deep;
//   - the codes in Seen are in ascending order and not negative;
//   - features, outputs and sets of categories are in range, and Values is complete;
//   - thresholds are numbers or infinities, and float32 values if the ensemble is Single; all
//     other numbers are finite; covers and counts are not negative.
//
// The error names the tree and the node. Validate takes time in proportion to the size of the
// ensemble.
func (e *Ensemble) Validate() error {
	switch {
	case e == nil:
		return errors.New("tree: there is no ensemble")
	case e.Outputs < 1:
		return fmt.Errorf("tree: the ensemble has %d outputs, and needs at least 1", e.Outputs)
	case len(e.Base) != e.Outputs:
		return fmt.Errorf("tree: the ensemble has %d outputs but a base for %d", e.Outputs, len(e.Base))
	case len(e.Features) > math.MaxInt32:
		return fmt.Errorf("tree: the ensemble has %d features, more than an int32 can number", len(e.Features))
	case e.Categories != nil && len(e.Categories) != len(e.Features):
		return fmt.Errorf("tree: the ensemble has %d features but categories for %d", len(e.Features), len(e.Categories))
	case e.Seen != nil && len(e.Seen) != len(e.Features):
		return fmt.Errorf("tree: the ensemble has %d features but codes that were seen for %d", len(e.Features), len(e.Seen))
	}
	for f, codes := range e.Seen {
		for i, c := range codes {
			if c < 0 || i > 0 && c <= codes[i-1] {
				return fmt.Errorf("tree: the codes that were seen of feature %d do not ascend from 0 on: code %d is %d", f, i, c)
			}
		}
	}
	if o := kernel.NonFinite(e.Base); o >= 0 {
		return fmt.Errorf("tree: the base of output %d is %v, which is not finite", o, e.Base[o])
	}
	var depth []int32
	for t := range e.Trees {
		var err error
		if depth, err = e.validate(&e.Trees[t], depth); err != nil {
			return fmt.Errorf("tree: tree %d: %w", t, err)
		}
	}
	return nil
}

// validate checks one tree. depth is working memory that is reused.
func (e *Ensemble) validate(t *Tree, depth []int32) ([]int32, error) {
	switch {
	case len(t.Nodes) == 0:
		return depth, errors.New("it has no nodes; a tree that does not split has one, its leaf")
	case len(t.Nodes) > math.MaxInt32:
		return depth, fmt.Errorf("it has %d nodes, more than an int32 can number", len(t.Nodes))
	case len(t.Sets) > math.MaxInt32:
		return depth, fmt.Errorf("its sets have %d words, more than an int32 can number", len(t.Sets))
	case !kernel.Finite(t.Weight):
		return depth, fmt.Errorf("its weight is %v, which is not finite", t.Weight)
	case t.Output < 0 || int(t.Output) >= e.Outputs:
		return depth, fmt.Errorf("it adds to output %d of %d", t.Output, e.Outputs)
	case t.Values != nil && t.Output != 0:
		return depth, fmt.Errorf("it has values for all outputs, and names output %d", t.Output)
	case t.Values != nil && len(t.Values)/e.Outputs != len(t.Nodes), len(t.Values)%e.Outputs != 0:
		return depth, fmt.Errorf("it has %d values for %d nodes and %d outputs", len(t.Values), len(t.Nodes), e.Outputs)
	}
	if i := kernel.NonFinite(t.Values); i >= 0 {
		return depth, fmt.Errorf("node %d: the value for output %d is %v, which is not finite", i/e.Outputs, i%e.Outputs, t.Values[i])
	}
	// depth holds the depth of each node that was seen as a child, and 0 for all others.
	depth = kernel.Sized(depth, len(t.Nodes))
	clear(depth)
	for i := range t.Nodes {
		if i > 0 && depth[i] == 0 {
			return depth, fmt.Errorf("node %d is not the child of a node before it", i)
		}
		if err := e.validateNode(t, i, depth); err != nil {
			return depth, fmt.Errorf("node %d: %w", i, err)
		}
	}
	return depth, nil
}

// validateNode checks node i and sets the depths of its children.
func (e *Ensemble) validateNode(t *Tree, i int, depth []int32) error {
	n := &t.Nodes[i]
	if err := n.validateNumbers(); err != nil {
		return err
	}
	if n.Leaf() {
		if n.Right != 0 {
			return fmt.Errorf("it has a right child, %d, but no left one", n.Right)
		}
		return nil
	}
	for _, child := range [2]int32{n.Left, n.Right} {
		switch {
		case int(child) <= i || int(child) >= len(t.Nodes):
			return fmt.Errorf("its child %d does not follow it among %d nodes", child, len(t.Nodes))
		case depth[child] != 0:
			return fmt.Errorf("its child %d has another parent too, or is both of its children", child)
		case depth[i] == MaxDepth:
			return fmt.Errorf("it is %d splits below the root, and splits", MaxDepth)
		}
		depth[child] = depth[i] + 1
	}
	switch {
	case n.Feature < 0 || int(n.Feature) >= len(e.Features):
		return fmt.Errorf("it splits on feature %d of %d", n.Feature, len(e.Features))
	case n.Flags&Categorical == 0 && e.Single && n.Threshold != float64(float32(n.Threshold)):
		return fmt.Errorf("its threshold %v is not a float32 value, as the ensemble is Single", n.Threshold)
	case n.Flags&Categorical != 0 && (n.Set < 0 || n.SetWords < 0 || int64(n.Set)+int64(n.SetWords) > int64(len(t.Sets))):
		return fmt.Errorf("its set is %d words from word %d of %d", n.SetWords, n.Set, len(t.Sets))
	}
	return nil
}

// validateNumbers checks each field of a node that can be checked without the others.
func (n *Node) validateNumbers() error {
	const known = DefaultLeft | Categorical | SetRight | ZeroMissing | NaNIsZero
	switch {
	case n.Flags&^known != 0:
		return fmt.Errorf("it has unknown flags %#x", n.Flags&^known)
	case n.Threshold != n.Threshold:
		return errors.New("its threshold is NaN")
	case !kernel.Finite(n.Value):
		return fmt.Errorf("its value is %v, which is not finite", n.Value)
	case !kernel.Finite(n.Gain):
		return fmt.Errorf("its gain is %v, which is not finite", n.Gain)
	case !kernel.Finite(n.Cover) || n.Cover < 0:
		return fmt.Errorf("its cover is %v, which is not a number of 0 or more", n.Cover)
	case n.Count < 0:
		return fmt.Errorf("its count is %d", n.Count)
	}
	return nil
}
