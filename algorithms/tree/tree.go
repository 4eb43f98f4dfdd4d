package tree

// Flags say how a node sends rows to its children.
type Flags uint8

// Flags of nodes.
const (
	// DefaultLeft sends rows with a missing feature left.
	DefaultLeft Flags = 1 << iota
	// Categorical marks a node that looks the value up in a set of categories.
	Categorical
	// SetRight sends the categories of the set right and all others left, instead of the other
	// way round.
	SetRight
	// ZeroMissing takes values within 1e-35 of zero as missing, and NaN too.
	ZeroMissing
	// NaNIsZero takes NaN as 0, so that nothing is missing.
	NaNIsZero
)

// A Node either has two children or is a leaf.
type Node struct {
	// Feature is the number of the feature that the node looks at.
	Feature int32
	// Left and Right are the numbers of the children within the tree; 0 at leaves.
	Left, Right int32
	// For categorical nodes, Set is the index of the node's first word in Tree.Sets, and
	// SetWords the number of its words. Category c is in the set if bit c%32 of word c/32 is 1.
	Set, SetWords int32
	Flags         Flags
	// Threshold sends values below it left.
	Threshold float64
	// Value is added to the tree's output for rows that end at the node. Nodes with children
	// have one too, where it is known: the value that they would have as leaves.
	Value float64
	// Gain is the reduction of the loss by the split; 0 at leaves.
	Gain float64
	// Cover is the sum of the hessians (or weights) of the training rows that reach the node.
	Cover float64
	// Count is the number of these rows; 0 where a format does not have it.
	Count int64
}

// Leaf reports whether the node is a leaf.
func (n *Node) Leaf() bool { return n.Left == 0 }

// A Tree is a list of nodes; the first is the root. Children come after their parents.
type Tree struct {
	Nodes []Node
	// Sets are the words of the categorical nodes' sets.
	Sets []uint32
	// Values has the values of nodes with several outputs, such as the shares of classes in a
	// forest: node i has Values[i*Outputs:(i+1)*Outputs]. It is nil if the tree has one output;
	// the values are then in the nodes.
	Values []float64
	// Output is the number of the output that a tree without Values adds to.
	Output int32
	// Weight is the factor of the tree's values. After DART it is not 1.
	Weight float64
}

// An Ensemble is trees over the same features. The score of a row is, for each output, Base
// plus the weighted values of the leaves in which the row ends, added in the order of the
// trees. It is immutable once made, and safe for concurrent use.
type Ensemble struct {
	// Features are the names of the features, in their order.
	Features []string
	// Categories has the names of the categories of each categorical feature, in the order of
	// their codes. For features that are numbers the entry is nil. It may be nil.
	Categories [][]string
	// Seen has the categories that training has seen, in ascending order, for each feature
	// whose categories are numbers. An entry is nil where they are not known. It may be nil,
	// and changes no prediction.
	Seen [][]int32
	// Outputs is the number of values in the score of a row.
	Outputs int
	// Base is what is added to each output.
	Base []float64
	// Average divides the sum of the trees' values by the number of trees that add to the
	// output, as forests do.
	Average bool
	// Single compares features as float32.
	Single bool
	Trees  []Tree
}

// First returns the ensemble of the first n trees, or of all if there are fewer. With k trees
// per round, First(k*rounds) is the ensemble after that many rounds of boosting. The trees are
// shared, and so are all other parts.
func (e *Ensemble) First(n int) *Ensemble {
	first := *e
	n = min(max(n, 0), len(e.Trees))
	first.Trees = e.Trees[:n:n]
	return &first
}
