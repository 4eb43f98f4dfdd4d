package grow

// Params say how trees grow. Splits are chosen by the second-order gain of gradients and
// hessians; the score of a node is G²/(H+Lambda). Each field says what its zero value means.
// The caller must refuse values that make no sense.
type Params struct {
	// LeafWise splits the leaf with the largest gain next, one at a time, rather than all
	// nodes of a level.
	LeafWise bool
	// MaxDepth is the largest number of splits above a leaf. 0 gives a single leaf; a negative
	// number means no limit.
	MaxDepth int
	// MaxLeaves is the largest number of leaves; 0 does not limit it. Where a level has
	// more nodes to split than leaves are left, those of larger gain go first.
	MaxLeaves int

	// Lambda and Alpha are the penalties of the squared and of the absolute leaf value.
	Lambda, Alpha float64
	// Gamma is the least gain of a split.
	Gamma float64
	// MaxDeltaStep is the largest absolute leaf value; 0 does not limit it.
	MaxDeltaStep float64
	// MinChildWeight is the least sum of hessians in a child.
	MinChildWeight float64
	// MinRows is the least number of rows in a child; 0 stands for 1.
	MinRows int

	// ByTree is the share of the features that are drawn for a tree, ByLevel the share of these
	// for a level, and ByNode the share of those for a node; 0 stands for 1. A share of m
	// features is max(1, ⌊share·m⌋) of them.
	ByTree, ByLevel, ByNode float64

	// Monotone has, by the number of the feature, 1 where the prediction must not fall as the
	// feature rises, −1 where it must not rise, else 0. nil means no constraint.
	Monotone []int8
	// Interaction has groups of features that may be on one path from the root. A feature in no
	// group is on a path with no other. nil means no constraint.
	Interaction [][]int

	// MaxOneHot is the largest number of categories of a feature that is split one category
	// against the others; 0 stands for 4. With more, categories are sorted by
	// G/(H+CategorySmooth) and cut in two.
	MaxOneHot int
	// MaxCategories is the largest number of categories on the smaller side of such a cut;
	// 0 stands for no limit.
	MaxCategories int
	// RootOfCategories raises MaxCategories for a feature to twice the square root of its
	// number of categories, where that is more.
	RootOfCategories bool
	// LearnCategories shrinks the gradients of sorted categories by how far these differ by
	// more than chance; see variance.go. CategorySmooth is ignored then.
	LearnCategories bool
	// MinCategoryRows is the least number of rows, estimated by weight, in the categories
	// between one cut that is tried and the next, and in those on the right.
	MinCategoryRows int
	// CategorySmooth is added to the hessian of each category where they are sorted.
	CategorySmooth float64
	// CategoryLambda is added to Lambda at splits of sorted categories.
	CategoryLambda float64

	// Seed seeds the draws of features. They depend only on it and on the number of the tree,
	// the level and the node.
	Seed uint64
}
