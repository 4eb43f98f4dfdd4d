// Package lightgbm reads and writes tree models in the text format of LightGBM.
//
//	m, err := lightgbm.Load("model.txt")           // of versions 2 to 4
//	s := m.Ensemble.Scorer()
//	s.Scores(row, margins)
//	m.Transform(margins, predictions)              // as predict of LightGBM
//
//	m, err = lightgbm.New(e, "multiclass", 3)      // an ensemble of ours
//	err = m.Save("model.txt")
//
// # What is read
//
// Files of the versions v2, v3 and v4 of the format, of LightGBM 2 to 4: all boosting types
// (a forest is an ensemble that averages), numeric and categorical splits, the three ways of
// taking values for missing, every objective with the parameters that predictions depend on,
// ranges, monotone constraints, settings of training, and the names of categories of data
// frames (pandas_categorical), by code.
// Trees with linear models in their leaves are refused by name.
//
// A split sends left what is at most its threshold, as float64; nodes here send left what is
// below theirs, which is the next number: rows go the same way to the bit. Predictions are
// sums of the same numbers in the same order. Splits stand before leaves in a tree, both in
// the order of the file: leaf i of LightGBM's pred_leaf is node len(Nodes)/2+i.
//
// A category is the value without its fraction. LightGBM takes those between −1 and 0 for
// 0 and unknown ones to the right; here those below 0 are unknown too.
//
// # What is written
//
// Version v4; see [Model.Encode]. LightGBM 2.3, 3.3 and 4.7 predict with it what the
// ensemble gives, to 1e-12.
//
// # Safety
//
// Files may come from anywhere: a count is believed only if its line is long enough for it,
// children form a tree, features and sets are in range. Errors tell the line.
//
// Sources: the structure of the files is that of files which 2.3, 3.3 and 4.7 wrote, and of
// LightGBM's documentation of parameters and missing values.
package lightgbm
