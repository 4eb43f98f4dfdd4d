// Command trees compares gradient boosting on this engine with XGBoost's, LightGBM's and Spark
// MLlib's, and random forests with scikit-learn's: time and memory of training, time of
// prediction, and what the models are worth on other rows.
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
//   - sparse: 200,000 rows of 1,000 features, of which 50 are not 0 in a row; what is absent
//     is 0 for LightGBM and ours and missing for XGBoost, which cannot do otherwise;
//   - leafwise, sparse-leafwise: the same rows, with trees of 255 leaves, the best leaf first;
//   - wide: 200,000 rows of 1,000 features, as dense;
//   - forest: 100,000 rows of 28 features, 100 trees without a limit.
//
// With --spark the GBTClassifier of Spark MLlib in local mode takes part where trees grow by
// depth. Its rows are cached before the clock starts, it has no penalty and takes its first tree
// whole, and what memory it takes is not known.
//
// With --beyond 10 rows are ten times what memory may hold, at a byte a value, as all keep
// binned rows: ours gets a tenth as its budget, and XGBoost's ExtMemQuantileDMatrix the rows in
// ten pieces, with its files in the same folder. Its memory has no bound but the machine's.
// Memory is not told then, as both map files. --cold has the system forget files before each
// run.
//
// Labels are 0 and 1, the loss is logistic. All have 255 bins, the learning rate 0.1, an L2
// penalty of 1, a least sum of hessians of 1 and no other limit. Each contestant runs with one
// and with two threads, in a process of its own; all take turns, and every second round goes
// backwards, so that a busy machine treats them alike.
//
// # The figures
//
// Training begins with the rows in memory, for ours in files that the system keeps in memory,
// and ends with the model; binning is a part of it. Memory is the largest resident size less
// that of the rows, and less what the process had before it read them. Prediction is of all
// training rows. Log-loss and AUC are those on a tenth as many other rows.
//
// What trees are worth on small real sets, over random splits of their rows, quality.py beside
// this file measures by the command.
package main
