package tree

// Flags say how a node sends rows to its children.
type Flags uint8

// Flags of nodes.
const (
	// DefaultLeft sends rows left in which the feature is missing.
	DefaultLeft Flags = 1 << iota
	// Categorical marks a node that looks its feature up in a set of categories.
	Categorical
	// SetRight has the categories of the set go right and all others left, in place of the
	// other way round.
	SetRight
	// ZeroMissing takes features within 1e-35 of zero for missing, NaN too.
	ZeroMissing
	// NaNIsZero takes NaN for 0, so that nothing is missing.
	NaNIsZero
)

// A Node either has two children or is a leaf.
type Node struct {
	// Feature is the number of the feature that is looked at.
	Feature int32
	// Left and Right are the numbers of the children within the tree; 0 at leaves.
	Left, Right int32
	// Set is the number of the node's first word in Tree.Sets and SetWords their count, for
	// categorical nodes: category c is in the set if bit c%32 of word c/32 is 1.
	Set, SetWords int32
	Flags         Flags
	// Threshold: what is below it goes left.
	Threshold float64
	// Value is what the node adds to its output if rows end there. Nodes with children have
	// one too, that of the leaf they would be, where it is known.
	Value float64
	// Gain is what the split won, of the loss; 0 at leaves.
	Gain float64
	// Cover is the sum of the hessians (or weights) of the training rows that come by.
	Cover float64
	// Count is the number of these rows; 0 where a format does not tell.
	Count int64
}

// Leaf tells whether rows end at the node.
func (n *Node) Leaf() bool { return n.Left == 0 }

// A Tree is a list of nodes; the first is the root. Children stand behind their parents.
type Tree struct {
	Nodes []Node
	// Sets are the words of the categorical nodes' sets.
	Sets []uint32
	// Values are those of leaves with several outputs, such as the shares of classes in a
	// forest: node i has Values[i*Outputs:(i+1)*Outputs]. It is nil where a tree has one
	// output, whose values stand in the nodes.
	Values []float64
	// Output is the number of the output that a tree without Values adds to.
	Output int32
	// Weight is what the tree's values are multiplied by, other than 1 after DART.
	Weight float64
}

// An Ensemble is trees over the same features. What it gives for a row is, for each output,
// Base plus the weighted values of the leaves in which the row ends, added in the order of
// the trees. It is immutable once made, and safe for concurrent use.
type Ensemble struct {
	// Features are the names of the features, in their order.
	Features []string
	// Categories has, for features that are categorical, the names of the categories, in
	// the order of their codes; nil entries are numbers. It may be nil.
	Categories [][]string
	// Seen has, for features whose categories are numbers, those that training has seen, in
	// ascending order; nil entries are not known. It may be nil, and changes no prediction.
	Seen [][]int32
	// Outputs is the number of values that rows get.
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

// First returns the ensemble of the first n trees, all of them where there are fewer: with k
// trees a round, First(k*rounds) is what boosting had after so many rounds. The trees are
// shared, and so are all other parts.
func (e *Ensemble) First(n int) *Ensemble {
	first := *e
	n = min(max(n, 0), len(e.Trees))
	first.Trees = e.Trees[:n:n]
	return &first
}
