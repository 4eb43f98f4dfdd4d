// Package foreign has the code that packages of tree models share to write files of XGBoost and
// LightGBM and to read them back. It has notes with the facts that these files cannot
// represent, and functions that convert trees.
//
//	x, err := xgboost.New(e, "binary:logistic", 0)
//	x, err = foreign.Notes{Kind: "gbdt", Classes: m.Classes.Values, Inputs: m.inputs}.XGBoost(x)
//	…
//	notes, err := foreign.OfXGBoost(x, "gbdt")   // nil if x has no notes
//
// XGBoost stores the notes as an attribute. LightGBM files have them as a parameter after the
// objective, which LightGBM ignores. The notes do not change predictions of either library.
package foreign
