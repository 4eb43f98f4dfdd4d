// Package tree has ensembles of decision trees, however they were made: their nodes, scores of
// rows, explanations and importances, and their texts and drawings.
//
// Packages gbdt and forest grow trees; xgboost and lightgbm read and write those of other
// libraries. All of them use an [Ensemble].
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
// A tree is a list of nodes, the root first. A node with Left of 0 is a leaf: no node has the
// root as a child. The value of a missing feature, NaN, goes the way of the node's flag
// [DefaultLeft]. Any other value goes left if it is below the threshold, or, at a categorical
// node, if its category is in the node's set. With the flag [SetRight] the categories in the
// set go right instead. The category of a value is the value without its fraction. Values that
// are negative or larger than any category are in no set, and so are categories that were not
// seen in training.
//
// Where the ensemble is Single, features are rounded to float32 before they are compared, and
// thresholds are float32 values. Rows are binned for training in the same way. So a row takes
// the same path in training, in prediction and in the files of XGBoost. Otherwise features are
// compared as float64. [Tree.Left] is this section as code; tests check that all other code
// that routes rows agrees with it.
//
// # Bits
//
// An output begins with its Base. Then the products of each tree's weight and the value of its
// leaf are rounded and added, in the order of the trees. Where the ensemble averages, the sum
// begins with 0 and is divided by the number of trees, and the Base is added last. Neither the
// batch of a row nor the number of threads matters, so the score of a row always has the same
// bits. The same is true of explanations and dependences.
//
// # How prediction is fast
//
// A batch goes through the trees 64 rows at a time, which are the bits of a word. For each
// threshold of a feature, a word says which rows are not below it, and all nodes with this
// threshold share the word. The words are made by one search among the feature's thresholds for
// each row, not by a comparison at each node. At a node, the rows that reach it divide by two
// logical operations (compare QuickScorer of Lucchese and others, SIGIR 2015, which has the
// leaves of a tree as the bits of a word for one row). Below eight levels, at categories and
// for single rows, rows are walked from node to node. A step compares two integers, without a
// branch. Many rows are walked side by side, so that they hide each other's latency.
package tree
