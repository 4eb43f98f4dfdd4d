// Package lightgbm reads and writes tree models in the text format of LightGBM.
//
//	m, err := lightgbm.Load("model.txt")           // of versions 2 to 4
//	s := m.Ensemble.Scorer()
//	s.Scores(row, margins)
//	m.Transform(margins, predictions)              // as predict of LightGBM
//
//	m, err = lightgbm.New(e, "multiclass", 3)      // an ensemble made here
//	err = m.Save("model.txt")
//
// # What is read
//
// Load and Decode read the versions v2, v3 and v4 of the format, which LightGBM 2 to 4 write.
// They read all boosting types (a forest becomes an ensemble with Average), numeric and
// categorical splits, the three kinds of missing values, every objective with the parameters on
// which predictions depend, ranges, monotone constraints, settings of training, and the names
// of categories of data frames (pandas_categorical), in the order of their codes. Trees with
// linear models in their leaves are refused with an error that names them.
//
// A split of LightGBM sends float64 values up to and including its threshold left. A node of
// package tree sends values below its threshold left. The threshold of the node is therefore
// the next larger float64, and all rows go the same way. Predictions are sums of the same
// numbers in the same order. In a tree, splits come before leaves, and both are in the order of
// the file: leaf i of LightGBM's pred_leaf is node len(Nodes)/2+i.
//
// A category is the value truncated to an integer. LightGBM treats values between −1 and 0 as
// 0, and sends unknown categories right. In package tree all values below 0 are unknown.
//
// # What is written
//
// Encode and Save write version v4 of the format; see [Model.Encode]. Predictions of LightGBM
// 2.3, 3.3 and 4.7 from the file agree with those of the ensemble to 1e-12.
//
// # Safety
//
// Files may come from untrusted sources. The reader checks that lines are long enough for their
// counts, that children form a tree, and that features and sets are in range. Errors contain
// the number of the line.
//
// Sources: files that LightGBM 2.3, 3.3 and 4.7 wrote, and LightGBM's documentation of
// parameters and missing values.
package lightgbm
