package tree

// Flags control how a node sends rows to its children.
type Flags uint8

const (
	// DefaultLeft sends rows with a missing feature left.
	DefaultLeft Flags = 1 << iota
	// Categorical marks a node that looks the value up in a set of categories.
	Categorical
	// SetRight sends the categories in the set right and all other categories left. Without it,
	// the categories in the set go left and all other categories go right.
	SetRight
	// ZeroMissing treats values within 1e-35 of zero, and NaN, as missing.
	ZeroMissing
	// NaNIsZero treats NaN as 0, so that no value is missing.
	NaNIsZero
)

// A Node either has two children or is a leaf.
type Node struct {
	// Feature is the number of the feature on which the node splits.
	Feature int32
	// Left and Right are the numbers of the children within the tree; 0 at leaves.
	Left, Right int32
	// For categorical nodes, Set is the index of the node's first word in Tree.Sets, and
	// SetWords is the number of its words. Category c is in the set if bit c%32 of word c/32 is
	// 1.
	Set, SetWords int32
	Flags         Flags
	// Threshold is the value below which rows go left.
	Threshold float64
	// Value is added to the tree's output for rows that end at the node. A node with children
	// also has a value, if it is known: the value that the node would have as a leaf.
	Value float64
	// Gain is the reduction of the loss by the split; 0 at leaves.
	Gain float64
	// Cover is the sum of the hessians (or weights) of the training rows that reach the node.
	Cover float64
	// Count is the number of training rows that reach the node. It is 0 if the tree was read
	// from a format without this number.
	Count int64
}

// Leaf reports whether the node is a leaf.
func (n *Node) Leaf() bool { return n.Left == 0 }

// A Tree is a list of nodes; the first is the root. Children come after their parents.
type Tree struct {
	Nodes []Node
	// Sets has the words of the sets of all categorical nodes.
	Sets []uint32
	// Values has the values of nodes with several outputs, such as the shares of classes in a
	// forest: node i has Values[i*Outputs:(i+1)*Outputs]. It is nil if the tree adds to only
	// one output; Node.Value then has the values.
	Values []float64
	// Output is the number of the output to which a tree without Values adds.
	Output int32
	// Weight is the factor by which the tree's values are multiplied. It can differ from 1
	// after training with DART.
	Weight float64
}

// An Ensemble is a list of trees over the same features. The score of a row is, for each
// output, the sum of Base and the weighted values of the leaves in which the row ends, added in
// the order of the trees. It is immutable once made, and safe for concurrent use.
type Ensemble struct {
	// Features has the names of the features, in their order.
	Features []string
	// Categories has the names of the categories of each categorical feature, in the order of
	// their codes. The entry of a numeric feature is nil. Categories itself may be nil.
	Categories [][]string
	// Seen has, for each feature whose categories are numbers, the categories that training has
	// seen, in ascending order. An entry is nil if the categories are not known. Seen itself
	// may be nil. It does not affect predictions.
	Seen [][]int32
	// Outputs is the number of values in the score of a row.
	Outputs int
	// Base has the value that is added to each output.
	Base []float64
	// If Average is true, scores divide the sum of the trees' values by the number of trees
	// that add to the output, as forests do.
	Average bool
	// If Single is true, features are rounded to float32 before they are compared.
	Single bool
	Trees  []Tree
}

// First returns an ensemble of the first n trees, or of all trees if there are fewer than n.
// With k trees per round, First(k*rounds) is the ensemble after that many rounds of boosting.
// The result shares the trees and all other parts with e.
func (e *Ensemble) First(n int) *Ensemble {
	first := *e
	n = min(max(n, 0), len(e.Trees))
	first.Trees = e.Trees[:n:n]
	return &first
}
