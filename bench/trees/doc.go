// Command trees compares gradient boosting in Superstep, XGBoost, LightGBM and Spark MLlib, and
// random forests in Superstep and scikit-learn. It measures the time and the memory of
// training, the time of prediction, and the quality of the models on rows that were not used in
// training.
//
//	go run ./bench/trees --python /path/to/python
//	go run ./bench/trees --python /path/to/python --problem dense --rounds 5
//	go run ./bench/trees --python /path/to/python --problem dense --scale 0.1 --trees 20 --spark
//	go run ./bench/trees --problem sparse --scale 0.1     # Superstep alone, on a tenth of the rows
//	go run ./bench/trees --python /path/to/python --json > bench/results/trees.json
//
// # What is compared
//
//   - dense: 1,000,000 rows of 28 features, 100 rounds, trees of depth 6;
//   - sparse: 200,000 rows of 1,000 features, with 50 nonzero features in a row. Absent values
//     are 0 for LightGBM and Superstep. XGBoost always treats them as missing;
//   - leafwise, sparse-leafwise: the same rows, with trees of 255 leaves, the best leaf first;
//   - wide: 200,000 dense rows of 1,000 features, trained as in dense;
//   - forest: 100,000 rows of 28 features, 100 trees of unlimited depth.
//
// With --spark, GBTClassifier of Spark MLlib takes part, in local mode, in the problems whose
// trees grow level by level. Its rows are cached before the clock starts. GBTClassifier has no
// penalty, and does not multiply its first tree by the learning rate. Its memory is not
// measured.
//
// With --beyond 10, the memory budget of Superstep is a tenth of the size of the binned rows.
// Their size is computed with one byte for each value, which is how all contestants store
// binned rows. XGBoost gets the rows in ten pieces as an ExtMemQuantileDMatrix, whose files are
// in the same folder; its memory is not limited. No memory is reported with --beyond, because
// both libraries map files. With --cold, the operating system drops cached files before each
// run.
//
// Labels are 0 and 1, the loss is logistic. All contestants have 255 bins, a learning rate of
// 0.1, an L2 penalty of 1, a minimum sum of hessians of 1 and no other limit. Each contestant
// runs with one and with two threads, in a process of its own. The contestants take turns, and
// every second round runs in reverse order, so that other load on the machine affects all of
// them alike.
//
// # The figures
//
// The time of training starts when the rows are in memory, or for Superstep when the files are
// in the page cache, and ends when the model is complete. It includes binning. Memory is the
// largest resident size of the process, minus its resident size before it read the rows, and
// minus the size of the rows. The time of prediction is the time to predict all training rows.
// Log-loss and AUC are measured on test rows, of which there are a tenth as many.
//
// The program quality.py in this folder measures the quality of trees on small real data sets.
// It trains with the command superstep, on random splits of the rows.
package main
