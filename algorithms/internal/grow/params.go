package grow

import (
	"errors"
	"fmt"
	"math"
)

// Criterion says what a split is to win.
type Criterion int

const (
	// Newton is the second-order gain of gradients and hessians: the score of a node is
	// G²/(H+lambda). With the hessian a row's weight and the gradient minus the weighted
	// label it is the reduction of variance.
	Newton Criterion = iota
	// Gini counts classes: the score of a node of N rows is Σ c²/N over its classes.
	Gini
	// Entropy counts classes: the score of a node of N rows is Σ c·ln(c/N).
	Entropy
)

// String returns the criterion's name.
func (c Criterion) String() string {
	switch c {
	case Newton:
		return "newton"
	case Gini:
		return "gini"
	case Entropy:
		return "entropy"
	}
	return fmt.Sprintf("Criterion(%d)", int(c))
}

// Params say how trees grow. Zero values are what the fields say.
type Params struct {
	Criterion Criterion
	// Classes is the number of classes that Gini and Entropy count.
	Classes int

	// LeafWise splits the leaf with the largest gain next, one at a time, rather than all
	// nodes of a level.
	LeafWise bool
	// MaxDepth is the largest number of splits above a leaf; 0 gives a lone leaf, negative
	// ones do not limit it.
	MaxDepth int
	// MaxLeaves is the largest number of leaves; 0 does not limit it. Where a level has
	// more nodes to split than leaves are left, those of larger gain go first.
	MaxLeaves int

	// Lambda and Alpha are the penalties of the squared and of the absolute leaf value,
	// for Newton.
	Lambda, Alpha float64
	// Gamma is the least gain of a split.
	Gamma float64
	// MaxDeltaStep is the largest absolute leaf value, for Newton; 0 does not limit it.
	MaxDeltaStep float64
	// MinChildWeight is the least sum of hessians (or weights) in a child.
	MinChildWeight float64
	// MinRows is the least number of rows in a child; 0 stands for 1. A row that is in the
	// bag several times counts as often.
	MinRows int

	// ByTree, ByLevel and ByNode are the shares of features that a tree looks at, of those
	// a level, and of those a node; 0 stands for 1. Of m features a share takes
	// max(1, ⌊share·m⌋).
	ByTree, ByLevel, ByNode float64
	// NodeFeatures is the number of features that a node looks at, of those its level has;
	// 0 stands for all. Where none of them gives a split, the others are tried one after
	// the other, in an order drawn for the node.
	NodeFeatures int
	// RandomThresholds draws one threshold for each feature and node, between its lowest
	// and highest bin there, in place of looking at all.
	RandomThresholds bool

	// Monotone has 1 for features in which the prediction must not fall, −1 for those in
	// which it must not rise, else 0, by number of the feature; nil for none. For Newton.
	Monotone []int8
	// Interaction has groups of features that may meet on a path from the root. A feature
	// that is in no group meets no other; nil for no constraint.
	Interaction [][]int

	// MaxOneHot is the largest number of categories of a feature for which one category is
	// split off the others; 0 stands for 4. Above it, categories are sorted by
	// G/(H+CategorySmooth) (by the share of each class, one class at a time, when classes
	// are counted) and cut in two.
	MaxOneHot int
	// MaxCategories is the largest number of categories on the smaller side of such a cut;
	// 0 stands for no limit.
	MaxCategories int
	// RootOfCategories raises MaxCategories, for features of so many categories that it is
	// more, to twice the root of their number.
	RootOfCategories bool
	// LearnCategories has what a category's rows say count by what chance leaves of it, where
	// categories are sorted, for Newton; see variance.go. CategorySmooth is of no use then.
	LearnCategories bool
	// MinCategoryRows is the least number of rows, estimated by weight, of the categories
	// between one cut that is tried and the next, and on the right.
	MinCategoryRows int
	// CategorySmooth is added to the hessian (or the weight) of each category where they
	// are sorted.
	CategorySmooth float64
	// CategoryLambda is added to Lambda at splits of sorted categories.
	CategoryLambda float64

	// Seed is that of the draws of features and thresholds, which are a function of it and
	// of the number of the tree, the level and the node alone.
	Seed uint64
}

// Validate reports values that make no sense.
func (p Params) Validate() error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch p.Criterion {
	case Newton:
	case Gini, Entropy:
		if p.Classes < 1 || p.Classes > MaxClasses {
			bad("there are %d classes; want 1 to %d", p.Classes, MaxClasses)
		}
		if p.Monotone != nil {
			bad("monotone constraints need the newton criterion, not %v", p.Criterion)
		}
	default:
		bad("unknown criterion %v", p.Criterion)
	}
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"lambda", p.Lambda}, {"alpha", p.Alpha}, {"gamma", p.Gamma}, {"max delta step", p.MaxDeltaStep},
		{"min child weight", p.MinChildWeight}, {"category smooth", p.CategorySmooth}, {"category lambda", p.CategoryLambda},
	} {
		if !(f.value >= 0) || math.IsInf(f.value, 1) {
			bad("%s is %v; want a finite number of 0 or more", f.name, f.value)
		}
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"columns by tree", p.ByTree}, {"columns by level", p.ByLevel}, {"columns by node", p.ByNode}} {
		if !(f.value >= 0 && f.value <= 1) {
			bad("the share of %s is %v; want one above 0 and up to 1", f.name, f.value)
		}
	}
	for _, f := range []struct {
		name  string
		value int
	}{
		{"max leaves", p.MaxLeaves}, {"min rows", p.MinRows}, {"node features", p.NodeFeatures},
		{"max one-hot", p.MaxOneHot}, {"max categories", p.MaxCategories},
		{"min category rows", p.MinCategoryRows},
	} {
		if f.value < 0 {
			bad("%s is %d; want 0 or more", f.name, f.value)
		}
	}
	for f, m := range p.Monotone {
		if m < -1 || m > 1 {
			bad("the monotone constraint of feature %d is %d; want -1, 0 or 1", f, m)
		}
	}
	for i, group := range p.Interaction {
		for _, f := range group {
			if f < 0 {
				bad("interaction group %d has feature %d; features count from 0", i, f)
			}
		}
	}
	return errors.Join(errs...)
}

// MaxClasses is the largest number of classes that trees count.
const MaxClasses = 1 << 12

// Batch says which trees grow in a superstep.
type Batch struct {
	// First is the number of the first tree in the whole ensemble; draws depend on the
	// trees' numbers, not on the batches they grow in.
	First int
	// Trees is how many grow together.
	Trees int
	// Targets is the number of Targets that they grow on: tree k grows on target
	// k mod Targets. 0 stands for as many as there are trees.
	Targets int
}
