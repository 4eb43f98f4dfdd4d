// Package foreign is what models of trees share where they go through the files of XGBoost
// and LightGBM: notes of what these files have no place for, and what becomes of trees.
//
//	x, err := xgboost.New(e, "binary:logistic", 0)
//	err = foreign.Notes{Kind: "gbdt", Classes: m.Classes.Values, Inputs: m.inputs}.XGBoost(x)
//	…
//	notes, err := foreign.OfXGBoost(x, "gbdt")   // nil if there are none
//
// XGBoost keeps the notes as an attribute, LightGBM as a parameter that stands with the
// objective, which it does not look at. Neither predicts another number for them.
package foreign
