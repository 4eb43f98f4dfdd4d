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
//
// # A node
//
// A tree is a list of nodes, the root first. A node with Left of 0 is a leaf: no node has
// the root as a child. The value of a missing feature, NaN, goes the way of the node's flag
// [DefaultLeft]. Any other goes left if it is below the threshold, or, at a categorical
// node, if its category is in the node's set; the flag [SetRight] turns the set around.
//
// Where the ensemble is Single, features are rounded to float32 before they are compared,
// and thresholds are float32 values; so are rows binned for training, and so the same rows
// take the same way in training, in prediction and in the files of XGBoost. Otherwise they
// are compared as float64.
package tree
