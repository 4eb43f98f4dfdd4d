// Package xgboost reads and writes tree models in the formats of XGBoost, JSON and UBJSON.
//
//	m, err := xgboost.Load("model.json")           // or .ubj; of 1.0 to 3.x
//	s := m.Ensemble.Scorer()
//	s.Scores(row, margins)                         // as output_margin of XGBoost
//	m.Transform(margins, predictions)              // as predict
//
//	m, err = xgboost.New(e, "binary:logistic", 0)  // an ensemble made here
//	err = m.Save("model.ubj")                      // for 1.7 to 3.x
//
// # What is read
//
// Boosters gbtree and dart with numeric and categorical splits; several classes or targets;
// boosted forests; every objective of XGBoost but expectiles; base_score as one number or as
// a number for each output. base_score is a probability or a mean where the objective has
// such a link; [tree.Ensemble].Base is always a margin. Names and types of features, names
// of categories (of 3.1 and later), attributes and the parameters of the objective are kept.
//
// Nodes keep their numbers, so that leaves are those of pred_leaf, unless pruning has left
// gaps. The values of nodes with children are XGBoost's base_weights, without the learning
// rate.
//
// Linear boosters, trees with vectors in their leaves (multi_output_tree), the binary format
// before 3.1 and pickles are refused by name.
//
// # What is written
//
// Files for XGBoost 1.7 to 3.x, in the structure of 2.1. [Model.Encode] documents what
// happens to things that XGBoost cannot express. XGBoost adds in float32, the ensemble in
// float64: margins agree to 1e-6, relative to their size or to 1. Features without names of
// their own are written without names, and XGBoost applies such models to data with any
// names. Otherwise the names must be those of the data. XGBoost's predict uses all rounds,
// whatever the attribute best_iteration says. [Model.First] cuts a model to its first
// rounds.
//
// # Safety
//
// Files may come from anywhere. Lengths and the numbers of nodes, features and classes are
// bounded by the bytes of the file. Values are nested at most 32 deep. Children are in range
// and form trees, and all numbers are in range. Errors have the byte, or the member such as
// learner.gradient_booster.model.trees[3].left_children[5].
//
// Sources: XGBoost's documentation ("Introduction to Model IO"), files that 1.4, 1.7, 2.1
// and 3.2 wrote, and draft 12 of the UBJSON specification.
package xgboost
