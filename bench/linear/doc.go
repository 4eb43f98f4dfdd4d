// Command linear compares logistic regression with this engine, scikit-learn and liblinear. It
// measures the time to an objective within a relative 1e-6 of the optimum.
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
//   - sparse: 200,000 rows of 10,000 features, with 50 nonzero features in a row. Some features
//     occur more often than others, as words do. The penalty is the same;
//   - lasso: the sparse rows with the penalty |w|/rows;
//   - even, even-lasso: the same with all features equally frequent, which is much easier for
//     solvers that do not scale features;
//   - sgd: 50 epochs of stochastic gradient descent over a sample of 7,000 rows of HIGGS, with
//     an intercept, on one thread. SGDClassifier of scikit-learn runs with the same loss,
//     penalty and schedule, and the table shows how far above the optimum each ends. Our steps
//     take 128 rows each, and those of SGDClassifier one.
//
// Ours runs at the parallelisms of --threads, 1 and 2, with the method that it chooses itself.
// scikit-learn runs its lbfgs with one and two threads, and liblinear, which has only one.
// liblinear's own command (-s 0, with L1 -s 6) runs if it is installed. Spark MLlib runs in
// local mode if asked for. Each runs in a process of its own. All take turns, and every second
// round goes backwards, so that a busy machine treats them alike.
//
// Without an L1 penalty there is also a hand-written loop on one goroutine. A programmer with
// the kernels and without an engine would write it. Below the table stands how many times as
// long ours takes at parallelism 1, which is the cost of the engine (the COST of McSherry,
// Isard and Murray, HotOS 2015). Both do the following while the clock runs:
//
//   - find the two classes of the labels, and the sign of each row from its class;
//   - check that the columns of sparse rows are within bounds, and find means, deviations and
//     extremes of all columns, in two passes for dense ones;
//   - choose 4,096 rows, copy them together, and allocate what is kept of all rows;
//   - minimise by L-BFGS over the coefficients of scaled features, with margins kept and step
//     lengths suggested by the chosen rows. Both need as many steps and as many reads of all
//     rows.
//
// Both begin with numbers in memory. Ours has checked before that they are finite. Ours does
// more than the loop needs: it finds any number of classes of any type, and allows for weights
// and offsets. It sums losses and gradients by shard and adds them up a tree, whatever the
// parallelism. It makes its decisions so that another process could make the same, can be
// cancelled at any chunk, and keeps a record of each superstep. The loop has all rows in one
// block and one accumulator. Both use the same kernels and chunks of the same size.
//
// # The clock
//
// Reading the rows is left out. Ours and the loop begin with the survey of the columns, and end
// with the first superstep or iteration that is close enough. lbfgs begins with fit and ends
// with the first iteration that is close enough, which a callback sees. liblinear is fitted at
// one tolerance after the other, and has the time of the first fit that is close enough. So is
// its command, which reads the rows as text. The clock of the command begins when it closes
// that file, after parsing all of it, and ends with the process. The optimum is the lowest
// value that any contestant has reached. The table marks contestants that do not come close
// enough.
package main
