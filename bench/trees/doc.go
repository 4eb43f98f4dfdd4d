// Command trees compares gradient boosting with this engine, XGBoost, LightGBM and Spark MLlib,
// and random forests with scikit-learn. It measures time and memory of training, time of
// prediction, and the quality of the models on other rows.
//
//	go run ./bench/trees --python /path/to/python
//	go run ./bench/trees --python /path/to/python --problem dense --rounds 5
//	go run ./bench/trees --python /path/to/python --problem dense --scale 0.1 --trees 20 --spark
//	go run ./bench/trees --problem sparse --scale 0.1     # ours alone, on a part of the rows
//	go run ./bench/trees --python /path/to/python --json > bench/results/trees.json
//
// # What is compared
//
//   - dense: 1,000,000 rows of 28 features, 100 rounds, trees of depth 6;
//   - sparse: 200,000 rows of 1,000 features, with 50 nonzero features in a row. What is absent
//     is 0 for LightGBM and ours, and missing for XGBoost, which has no other way;
//   - leafwise, sparse-leafwise: the same rows, with trees of 255 leaves, the best leaf first;
//   - wide: 200,000 rows of 1,000 features, as dense;
//   - forest: 100,000 rows of 28 features, 100 trees without a limit.
//
// With --spark, GBTClassifier of Spark MLlib takes part in local mode where trees grow by
// depth. Its rows are cached before the clock starts. It has no penalty, and adds its first
// tree without the learning rate. Its memory is not known.
//
// With --beyond 10, the rows at one byte a value, which is how all contestants keep binned
// rows, are ten times the memory. Ours gets a tenth of that as its budget. XGBoost's
// ExtMemQuantileDMatrix gets the rows in ten pieces, with its files in the same folder. Nothing
// but the machine bounds the memory of XGBoost. No memory is reported then, as both map files.
// --cold has the system drop cached files before each run.
//
// Labels are 0 and 1, the loss is logistic. All have 255 bins, the learning rate 0.1, an L2
// penalty of 1, a minimum sum of hessians of 1 and no other limit. Each contestant runs with
// one and with two threads, in a process of its own. All take turns, and every second round
// goes backwards, so that a busy machine treats them alike.
//
// # The figures
//
// Training begins with the rows in memory, which for ours are files in the page cache, and ends
// with the model. Binning is a part of it. Memory is the largest resident size less that of the
// rows, and less that of the process before it read them. Prediction is of all training rows.
// Log-loss and AUC are measured on other rows, a tenth as many.
//
// quality.py beside this file measures the quality of trees on small real data sets, over
// random splits of their rows, with the command.
package main
