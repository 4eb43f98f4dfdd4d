// Package tree represents ensembles of decision trees, regardless of how they were trained. It
// computes scores of rows, explanations and importances, and it writes trees as text and as
// drawings.
//
// Packages gbdt and forest grow trees; packages xgboost and lightgbm read and write the trees
// of other libraries. All of them use an [Ensemble].
//
//	e := &tree.Ensemble{Features: …, Outputs: 1, Base: []float64{0}, Trees: trees}
//	err := e.Validate()                       // every index within bounds, no cycle
//	s := e.Scorer()                           // a layout in memory for fast prediction
//	s.Scores(row, margins)                    // no allocation, any number of goroutines
//	s.Dense(rows, n, margins, threads)        // many rows, in a fraction of the time per row
//	s.DenseLeaves(rows, n, nodes, threads)    // the node in which each row ends, for each tree
//
//	x, err := e.Explainer(tree.ExplainOptions{})
//	x.Values(row, values)                     // exact Shapley values, which add up to the margin
//	x.Interactions(row, matrix)               // exact Shapley interactions of pairs of features
//	e.Importances()                           // splits, gains and covers of the features
//	s.Dependence(rows, n, features, points, means, threads)
//
//	e.WriteText(w), e.WriteDump(w)            // all trees, as text for humans and as JSON for programs
//	e.WriteSVG(w, 0, tree.DrawOptions{})      // a drawing of one tree; also WriteDot
//	json.Marshal(e)                           // the format in model files, without any loss
//
// # A node
//
// A tree is a list of nodes, the root first. A node with Left of 0 is a leaf: no node has the
// root as a child. A row whose feature is missing (NaN) goes left if the node has the flag
// [DefaultLeft], and right otherwise. Any other row goes left if its value is below the
// threshold or, at a categorical node, if its category is in the node's set. With the flag
// [SetRight] the categories in the set go right instead. The category of a value is the value
// truncated to an integer. Values that are negative or larger than any category are in no set.
// Categories that were not seen in training are in no set either.
//
// If Ensemble.Single is true, features are rounded to float32 before they are compared, and
// thresholds are float32 values. Rows are binned for training in the same way. So a row takes
// the same path in training, in prediction, and if XGBoost reads the model. Otherwise features
// are compared as float64. [Tree.Left] implements exactly the rules of this section. Tests
// check that all other code that routes rows agrees with it.
//
// # Bits
//
// The sum for an output starts with its Base. For each tree, in the order of the trees, the
// product of the tree's weight and the leaf's value is rounded and added. If Ensemble.Average
// is true, the sum starts with 0 and is divided by the number of trees that add to the output,
// and the Base is added last. The order of operations depends neither on the batch to which a
// row belongs nor on the number of threads, so the score of a row always has the same bits. The
// same holds for explanations and dependences.
//
// # How prediction is fast
//
// A batch passes through the trees in blocks of 64 rows, each of which is a bit of a 64-bit
// word. For each threshold of a feature there is a word with the bits of the rows that are not
// below the threshold. All nodes with this threshold share the word. Computing the words takes
// one search among the feature's thresholds for each row, instead of a comparison at each node.
// At a node, two logical operations divide the rows that reach it (compare QuickScorer of
// Lucchese and others, SIGIR 2015, which has the leaves of a tree as the bits of a word for one
// row). Single rows, and all rows below the eighth level, move from node to node instead. Each
// step compares two integers, without a branch. Many such walks are interleaved, so that each
// hides the latency of the others.
package tree
