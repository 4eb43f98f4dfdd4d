// Package xgboost reads and writes tree models in the formats of XGBoost, JSON and UBJSON.
//
//	m, err := xgboost.Load("model.json")           // or .ubj; of 1.0 to 3.x
//	s := m.Ensemble.Scorer()
//	s.Scores(row, margins)                         // as output_margin of XGBoost
//	m.Transform(margins, predictions)              // as predict
//
//	m, err = xgboost.New(e, "binary:logistic", 0)  // an ensemble of ours
//	err = m.Save("model.ubj")                      // for 1.7 to 3.x
//
// # What is read
//
// Boosters gbtree and dart with numeric and categorical splits; several classes or targets;
// boosted forests; every objective of XGBoost but expectiles; base_score in its forms, as a
// number or one for each output, which is a probability or a mean where the objective has
// such a link, and a margin in [tree.Ensemble].Base. Names and types of features, names of
// categories (of 3.1 and later), attributes and the parameters of the objective are kept.
//
// Nodes keep their numbers, so that leaves are those of pred_leaf, unless pruning has left
// holes in them. The values of nodes with children are base_weights as XGBoost has them: not
// multiplied by the learning rate.
//
// Linear boosters, trees with vectors in their leaves (multi_output_tree), the binary format
// before 3.1 and pickles are refused by name.
//
// # What is written
//
// Files for XGBoost 1.7 to 3.x, of the structure that 2.1 has; see [Model.Encode] for what
// becomes of what XGBoost has no form for. XGBoost adds up in float32, the ensemble in
// float64: margins agree to 1e-6 of their size, or of 1. Features without names of their own
// are written without, and XGBoost applies such models to data of any names; otherwise the
// names must be those of the data. XGBoost's predict goes through all rounds, whatever the
// attribute best_iteration says: [Model.First] cuts a model to them.
//
// # Safety
//
// Files may come from anywhere: lengths, numbers of nodes, features and classes are believed
// only as far as the file has bytes for them, values lie at most 32 deep, children are in
// range and form trees, and numbers are what they are to be. Errors tell the byte, or the
// member such as learner.gradient_booster.model.trees[3].left_children[5].
//
// Sources: the structure of the files is that of XGBoost's documentation ("Introduction to
// Model IO") and of files that 1.4, 1.7, 2.1 and 3.2 wrote; UBJSON is draft 12 of its
// specification.
package xgboost
