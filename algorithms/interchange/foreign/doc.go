// Package foreign has code that tree models have in common for writing files of XGBoost and
// LightGBM and reading them back: notes with the facts that these files cannot represent, and
// changes to the trees.
//
//	x, err := xgboost.New(e, "binary:logistic", 0)
//	x, err = foreign.Notes{Kind: "gbdt", Classes: m.Classes.Values, Inputs: m.inputs}.XGBoost(x)
//	…
//	notes, err := foreign.OfXGBoost(x, "gbdt")   // nil if there are none
//
// XGBoost stores the notes as an attribute. LightGBM files have them as a parameter after the
// objective, which LightGBM ignores. The notes do not change predictions of either library.
package foreign
