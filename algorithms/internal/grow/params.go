package grow

// Params are the parameters of the growth of trees. Splits are chosen by the second-order gain:
// the score of a node with gradient sum G and hessian sum H is G²/(H+Lambda). The caller must
// validate the values.
type Params struct {
	// LeafWise splits one leaf at a time, always the leaf with the largest gain. Otherwise, all
	// nodes of a level are split together.
	LeafWise bool
	// MaxDepth is the largest number of splits between the root and a leaf. With 0, a tree is a
	// single leaf; a negative number means no limit.
	MaxDepth int
	// MaxLeaves is the largest number of leaves; 0 means no limit. If splitting all nodes of a
	// level would exceed MaxLeaves, the nodes with the largest gains are split.
	MaxLeaves int

	// Lambda is the L2 penalty of leaf values, and Alpha is the L1 penalty.
	Lambda, Alpha float64
	// Gamma is the least gain of a split.
	Gamma float64
	// MaxDeltaStep is the largest absolute leaf value; 0 means no limit.
	MaxDeltaStep float64
	// MinChildWeight is the least sum of hessians in a child.
	MinChildWeight float64
	// MinRows is the least number of rows in a child; 0 means 1.
	MinRows int

	// ByTree is the share of all features that is drawn for a tree. ByLevel is the share of the
	// tree's features that is drawn for a level. ByNode is the share of the level's features
	// that is drawn for a node. A share of 0 means 1. A share s of m features is max(1, ⌊s·m⌋)
	// features.
	ByTree, ByLevel, ByNode float64

	// Monotone has the constraint of each feature, by the number of the feature. With 1 the
	// prediction must not fall when the feature rises. With −1 the prediction must not rise
	// when the feature rises. 0 means no constraint. nil means no constraints.
	Monotone []int8
	// Interaction has groups of feature numbers. Different features may be on one path from the
	// root only if some group contains all of them. So on a path with a feature that is in no
	// group, there is no other feature. nil means no constraint.
	Interaction [][]int

	// A feature with at most MaxOneHot categories is split into one category and all others; 0
	// means 4. For a feature with more categories, the categories are sorted by
	// G/(H+CategorySmooth), and the sorted sequence is cut in two.
	MaxOneHot int
	// MaxCategories is the largest number of categories on the side of such a cut that has
	// fewer categories; 0 means no limit.
	MaxCategories int
	// RootOfCategories raises MaxCategories for a feature to twice the square root of its
	// number of categories, if that is larger.
	RootOfCategories bool
	// LearnCategories shrinks the mean gradients of sorted categories towards their common
	// mean. The less the categories differ beyond chance, the more they are shrunk; see
	// variance.go. CategorySmooth is then ignored.
	LearnCategories bool
	// MinCategoryRows is the smallest number of rows in the categories between two successive
	// cuts that are tried, and in the categories to the right of a cut. Numbers of rows are
	// estimated from sums of hessians.
	MinCategoryRows int
	// CategorySmooth is added to the hessian sum of each category for sorting.
	CategorySmooth float64
	// CategoryLambda is added to Lambda for splits of sorted categories.
	CategoryLambda float64

	// Seed seeds the draws of features. A draw depends only on Seed and on the number of the
	// tree, the level and the node.
	Seed uint64
}
