// Command linear compares logistic regression on this engine with scikit-learn's and
// liblinear's, by the time to an objective within 1e-6, relatively, of the optimum.
//
//	go run ./bench/linear --python /path/to/python
//	go run ./bench/linear --python /path/to/python --problem dense --rounds 5
//	go run ./bench/linear --python /path/to/python --problem dense --spark
//	go run ./bench/linear --python /path/to/python --problem sgd --rounds 5
//	go run ./bench/linear --methods Newton,LBFGS          # ours alone, method by method
//	go run ./bench/linear --threads 1                     # ours beside the loop
//
// # What is compared
//
// Six problems, the first five without an intercept, so that every solver has the same objective,
// Σ loss/rows + penalty:
//
//   - dense: 500,000 rows of 50 features, whose standard deviations go from 0.1 to 3; the
//     penalty is ½·|w|²/rows, C = 1 of scikit-learn;
//   - sparse: 200,000 rows of 10,000 features, of which 50 are not 0 in a row, some features
//     more often than others, as words are, with the same penalty;
//   - lasso: the sparse rows with the penalty |w|/rows;
//   - even, even-lasso: the same where every feature is as frequent as any other, which
//     solvers that do not scale features find much easier;
//   - sgd: 50 epochs of stochastic gradient descent over a sample of 7,000 rows of HIGGS with
//     an intercept, beside SGDClassifier of scikit-learn with the same loss, penalty and
//     schedule, on one thread, and how far above the optimum each ends. Steps of ours are of
//     128 rows, those of SGDClassifier of one.
//
// Ours runs at the parallelism of --threads, 1 and 2, by the method that it picks itself. scikit-learn runs
// its lbfgs with one and two threads, and liblinear, which has one; liblinear's own command
// (-s 0, with L1 -s 6) runs where it is installed; Spark MLlib, if asked for, runs in local
// mode. Each runs in a process of its own, all take turns, and every second round goes
// backwards, so that a busy machine treats them alike.
//
// Without an L1 penalty there is also a loop written by hand, on one goroutine: what a
// programmer would write who has the kernels and no engine. How many times as long ours takes
// at parallelism 1 is what the engine costs (the COST of McSherry, Isard and Murray, HotOS
// 2015), and stands below the table. What both do while the clock runs:
//
//   - find the two classes of the labels, and the signs of the rows by them;
//   - see that the columns of sparse rows are within bounds, and find means, deviations and
//     extremes of all columns, of dense ones in two passes;
//   - choose 4,096 rows, copy them together, and make room for what is kept of all rows;
//   - minimise by L-BFGS over the coefficients of scaled features, on margins that are kept,
//     with steps that the chosen rows suggest: as many steps and as many reads of all rows.
//
// Both begin with numbers in memory, of which ours has seen before that they are finite. What
// ours does besides, and the loop need not: it finds classes of any type and any number,
// allows for weights and offsets, sums losses and gradients by shard and adds them up a tree,
// whatever the parallelism, takes its decisions so that they could be taken elsewhere, can be
// cancelled at any chunk, and keeps the record of each superstep. The loop has all rows in one
// block and one accumulator. Both use the same kernels and chunks of the same size.
//
// # The clock
//
// Reading the rows is left out. Ours and the loop begin with the survey of the columns and end
// with the first superstep or iteration that is close enough; lbfgs begins with fit and ends
// with the first iteration that is close enough, which a callback sees; liblinear is fitted at
// one tolerance after the other, and has the time of the first that is close enough. So is its
// command, which reads the rows as text: its clock begins when it has closed that file, all of
// which it has then parsed, and ends with the process. The optimum is the lowest value that any
// contestant has come to, and those that come no closer say so.
package main
