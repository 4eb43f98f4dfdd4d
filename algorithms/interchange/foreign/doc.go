// Package foreign has what tree models share to be written to files of XGBoost and LightGBM
// and read back: notes for what these files have no place for, and changes to the trees.
//
//	x, err := xgboost.New(e, "binary:logistic", 0)
//	x, err = foreign.Notes{Kind: "gbdt", Classes: m.Classes.Values, Inputs: m.inputs}.XGBoost(x)
//	…
//	notes, err := foreign.OfXGBoost(x, "gbdt")   // nil if there are none
//
// XGBoost keeps the notes as an attribute. LightGBM keeps them as a parameter beside the
// objective and ignores them. They change no prediction of either.
package foreign
