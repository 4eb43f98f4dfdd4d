package grow

// Params say how trees grow, by the second-order gain of gradients and hessians: the score of
// a node is G²/(H+Lambda). Zero values are what the fields say. Values that make no sense are
// the caller's to refuse.
type Params struct {
	// LeafWise splits the leaf with the largest gain next, one at a time, rather than all
	// nodes of a level.
	LeafWise bool
	// MaxDepth is the largest number of splits above a leaf; 0 gives a lone leaf, negative
	// ones do not limit it.
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

	// ByTree, ByLevel and ByNode are the shares of features that a tree looks at, of those
	// a level, and of those a node; 0 stands for 1. Of m features a share takes
	// max(1, ⌊share·m⌋).
	ByTree, ByLevel, ByNode float64

	// Monotone has 1 for features in which the prediction must not fall, −1 for those in
	// which it must not rise, else 0, by number of the feature; nil for none.
	Monotone []int8
	// Interaction has groups of features that may meet on a path from the root. A feature
	// that is in no group meets no other; nil for no constraint.
	Interaction [][]int

	// MaxOneHot is the largest number of categories of a feature for which one category is
	// split off the others; 0 stands for 4. Above it, categories are sorted by
	// G/(H+CategorySmooth) and cut in two.
	MaxOneHot int
	// MaxCategories is the largest number of categories on the smaller side of such a cut;
	// 0 stands for no limit.
	MaxCategories int
	// RootOfCategories raises MaxCategories, for features of so many categories that it is
	// more, to twice the root of their number.
	RootOfCategories bool
	// LearnCategories has what a category's rows say count by what chance leaves of it, where
	// categories are sorted; see variance.go. CategorySmooth is of no use then.
	LearnCategories bool
	// MinCategoryRows is the least number of rows, estimated by weight, of the categories
	// between one cut that is tried and the next, and on the right.
	MinCategoryRows int
	// CategorySmooth is added to the hessian of each category where they are sorted.
	CategorySmooth float64
	// CategoryLambda is added to Lambda at splits of sorted categories.
	CategoryLambda float64

	// Seed is that of the draws of features, which are a function of it and of the number of
	// the tree, the level and the node alone.
	Seed uint64
}
