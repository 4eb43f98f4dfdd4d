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
// Load and Decode read the boosters gbtree and dart with numeric and categorical splits;
// several classes or targets; boosted forests; every objective of XGBoost except expectiles;
// and base_score as one number or as a number for each output. Depending on the link of the
// objective, base_score is a probability, a mean or a margin, while [tree.Ensemble].Base is
// always a margin. Names and types of features, names of categories (of 3.1 and later),
// attributes and the parameters of the objective are kept.
//
// Nodes keep their numbers, so that the numbers of leaves equal those of pred_leaf, unless
// pruning has left gaps. The values of nodes with children are XGBoost's base_weights, without
// the learning rate.
//
// Linear boosters, trees with vectors in their leaves (multi_output_tree), the binary format
// before 3.1 and pickles are refused with an error that names them.
//
// # What is written
//
// Encode and Save write files for XGBoost 1.7 to 3.x, in the structure of 2.1. [Model.Encode]
// documents how it writes what XGBoost cannot express. XGBoost adds in float32 and the
// ensemble in float64, so margins agree to 1e-6, relative to the larger of their size and 1. If
// features have only XGBoost's default names, they are written without names, and XGBoost
// applies the model to data with any names. Otherwise the names must equal those of the data.
// XGBoost's predict uses all rounds, regardless of the attribute best_iteration. [Model.First]
// returns the model of the first rounds.
//
// # Safety
//
// Files may come from untrusted sources. The reader bounds lengths and the numbers of nodes,
// features and classes by the size of the file. It checks that values are nested at most 32
// deep, that children are in range and form trees, and that all numbers are in range. Errors
// contain the offset of the byte, or the member, such as
// learner.gradient_booster.model.trees[3].left_children[5].
//
// Sources: XGBoost's documentation ("Introduction to Model IO"), files that 1.4, 1.7, 2.1
// and 3.2 wrote, and draft 12 of the UBJSON specification.
package xgboost
