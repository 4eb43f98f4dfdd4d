// Package tree is what ensembles of decision trees are, however they were made: their nodes,
// how rows go through them, what they say about features, and how they are written and
// drawn.
//
// Packages gbdt and forest grow trees, xgboost and lightgbm read and write those of other
// libraries; all of them mean an [Ensemble].
//
//	e := &tree.Ensemble{Features: …, Outputs: 1, Base: []float64{0}, Trees: trees}
//	err := e.Validate()                       // every index within bounds, no cycle
//	s := e.Scorer()                           // a layout made for walking
//	s.Scores(row, margins)                    // no allocation, any number of goroutines
//	s.Dense(rows, n, margins, threads)        // many rows, several times as fast for each
//	s.DenseLeaves(rows, n, nodes, threads)    // where they end
//
//	x, err := e.Explainer(tree.ExplainOptions{})
//	x.Values(row, values)                     // exact Shapley values, which add up to the margin
//	x.Interactions(row, matrix)               // and those of pairs of features
//	e.Importances()                           // splits, gains and covers of the features
//	s.Dependence(rows, n, features, points, means, threads)
//
//	e.WriteText(w), e.WriteDump(w)            // all trees, to read and for programs
//	e.WriteSVG(w, 0, tree.DrawOptions{})      // one, drawn; also WriteDot
//	json.Marshal(e)                           // exact, for the files of models
//
// # A node
//
// A tree is a list of nodes, the root first. A node with Left of 0 is a leaf: no node has
// the root as a child. The value of a missing feature, NaN, goes the way of the node's flag
// [DefaultLeft]. Any other goes left if it is below the threshold, or, at a categorical
// node, if its category is in the node's set; the flag [SetRight] turns the set around.
// The category of a value is the value without its fraction. Values that are negative or larger
// than any category are in no set, and so are categories that were not seen in training.
//
// Where the ensemble is Single, features are rounded to float32 before they are compared,
// and thresholds are float32 values; so are rows binned for training, and so the same rows
// take the same way in training, in prediction and in the files of XGBoost. Otherwise they
// are compared as float64. [Tree.Left] is this paragraph as code; all else that routes rows
// is tested to agree with it.
//
// # Bits
//
// An output is its Base, and then the product of each tree's weight and the value of its leaf,
// rounded, added in the order of the trees; where the ensemble averages, the sum begins with 0,
// is divided by the number of trees, and the Base is added last. Nothing else has a part in it,
// neither the batch a row is in nor the number of threads, so that scores of one row are the
// same bits however they were asked for. The same is true of explanations and dependences.
//
// # How prediction is fast
//
// A batch goes through the trees 64 rows at a time, which are the bits of a word. For each
// threshold of a feature, a word says which rows are not below it, and all nodes with this
// threshold share it: a search among the feature's thresholds for each row makes them, not a
// comparison at each node. At a node, the rows that reach it divide by two logical operations
// (compare QuickScorer of Lucchese and others, SIGIR 2015, which has the leaves of a tree as
// the bits of a word for one row). Deeper than eight levels, at categories and for single rows
// it is walks: from each node to the next by the comparison of two integers, without a branch,
// many walks side by side so that they hide each other's latency.
package tree
