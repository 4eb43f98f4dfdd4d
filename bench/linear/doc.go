// Command linear compares logistic regression in Superstep, scikit-learn, liblinear and Spark
// MLlib. It measures the time to an objective within a relative 1e-6 of the optimum.
//
//	go run ./bench/linear --python /path/to/python
//	go run ./bench/linear --python /path/to/python --problem dense --rounds 5
//	go run ./bench/linear --python /path/to/python --problem dense --spark
//	go run ./bench/linear --python /path/to/python --problem sgd --rounds 5
//	go run ./bench/linear --methods Newton,LBFGS          # Superstep alone, with each method
//	go run ./bench/linear --threads 1                     # Superstep and the loop
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
//   - even, even-lasso: sparse and lasso with equally frequent features, which is much easier
//     for solvers that do not scale features;
//   - sgd: 50 epochs of stochastic gradient descent over a sample of 7,000 rows of HIGGS, with
//     an intercept, on one thread. SGDClassifier of scikit-learn runs with the same loss,
//     penalty and schedule. The table shows how far above the optimum each library ends. A step
//     of Superstep uses 128 rows, and a step of SGDClassifier uses one row.
//
// Superstep runs at the parallelisms that --threads gives, by default 1 and 2, with the method
// that it selects by default. scikit-learn runs its solver lbfgs with one and with two threads,
// and its solver liblinear, which has only one thread. The training command of liblinear itself
// runs if it is installed, with the option -s 0, or -s 6 if the penalty is L1. With --spark,
// Spark MLlib runs in local mode. Each contestant runs in a process of its own. The contestants
// take turns, and every second round has the reverse order, so that other load on the machine
// affects all of them alike.
//
// In problems without an L1 penalty, a hand-written loop on one goroutine takes part, too. A
// programmer who has the kernels but no engine would write it. Below the table, the program
// prints Superstep's time at parallelism 1 divided by the loop's time. This ratio is the cost
// of the engine (the COST of McSherry, Isard and Murray, HotOS 2015). Superstep and the loop
// both do the following while the clock runs:
//
//   - find the two classes of the labels, and the sign of each row from its class;
//   - check that the columns of sparse rows are within bounds, and find means, deviations and
//     extremes of all columns, in two passes for dense columns;
//   - choose 4,096 rows, copy them into one block, and allocate the margins of all rows;
//   - minimise by L-BFGS over the coefficients of scaled features, with margins kept and step
//     lengths suggested by the chosen rows. Both need the same number of steps and of reads of
//     all rows.
//
// Both start with numbers in memory. Superstep has checked before that these numbers are
// finite. Superstep also does more than the loop: it finds any number of classes with labels of
// any type, and supports weights and offsets. It sums losses and gradients for each shard, and
// adds the sums of shards in a tree that does not depend on the parallelism. Every process
// makes the same decisions. A job can be cancelled after any chunk, and it records each
// superstep. The loop has all rows in one block, and one accumulator. Both use the same kernels
// and chunks of the same size.
//
// # The clock
//
// The time of reading the rows does not count. For Superstep and the loop, the clock starts
// with the survey of the columns, and stops with the first superstep or iteration whose
// objective is within 1e-6 of the optimum. For lbfgs it starts with the call of fit, and stops
// with the first such iteration, which a callback observes. liblinear is fitted with one
// tolerance after the other, and its figure is the time of the first fit that is within 1e-6 of
// the optimum. The same holds for liblinear's command, which reads the rows from a text file.
// The clock of the command starts when it closes that file, after it has parsed all rows, and
// stops when the process exits. The optimum is the lowest objective that any contestant has
// reached. The table marks contestants that do not come within 1e-6 of the optimum.
package main
