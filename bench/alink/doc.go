// Command alink compares the training of models with Superstep and with Alink, from a CSV file
// to a saved model.
//
//	go run ./bench/alink --alink bench/.alink
//	go run ./bench/alink --alink bench/.alink --problem gbdt --rounds 5 --threads 1,2
//	go run ./bench/alink --alink bench/.alink --json > bench/results/alink.json
//	go run ./bench/alink --rows 10000                     # Superstep alone, few rows
//
// # Installing Alink
//
// Alink 1.5.0 with Flink 1.13.6 runs on Java 17. The following commands, which need Maven and a
// Java compiler, install it in the folder bench/.alink. The installation takes 200 MB in that
// folder, and another 200 MB in Maven's local repository:
//
//	mvn -f bench/alink/pom.xml dependency:copy-dependencies -DoutputDirectory=$PWD/bench/.alink/lib
//	javac -cp 'bench/.alink/lib/*' -d bench/.alink/classes bench/alink/AlinkTraining.java
//
// # What is compared
//
//   - kmeans: 1,000,000 rows of 16 features, drawn from 8 normal distributions, 10 clusters, 20
//     updates of the centres. Superstep and Alink each choose random rows as initial centres,
//     which is Alink's default. Alink cannot start from given centres, and its initialisation by
//     k-means|| takes much longer;
//   - logistic: 1,000,000 rows of 28 features, two classes, 20 iterations of L-BFGS on
//     standardised features with an intercept and without a penalty;
//   - gbdt: 100,000 rows of 28 features, two classes, 20 trees of depth 6, learning rate 0.1,
//     128 bins, at least 100 rows in a leaf, no penalty, gains computed from gradients and
//     hessians.
//
// Both libraries read the same CSV file, train at the same parallelism and save the model.
// Superstep runs as the command superstep. Alink runs as the program AlinkTraining.java in
// Flink's local mode. Tolerances are 0, so that no training ends before its last iteration.
// There is one exception: Superstep's k-means ends when no centre moves.
//
// Every training runs in a process of its own. There are --rounds rounds, and in each round
// every contestant trains once. The order changes every round, so that other load on the
// machine affects all contestants alike.
//
// # The figures
//
// Wall time is the time from the start of the process to its end. For Alink it includes the
// start of Java and of Flink; with --rows 1000 it consists of little else. CPU is processor
// time in user and system mode. Peak memory is the largest resident size; for Alink it includes
// the heap that Java reserves by default. The table has medians over the rounds. "times ours"
// is the median over rounds of the contestant's figure divided by Superstep's figure in the
// same round, with the same number of threads.
//
// In the first round each contestant also predicts the rows with the model that it has saved.
// This prediction is not timed. The program computes the quality of the predictions: the
// inertia of the clusters, or log-loss and AUC of the classes. If the quality of a contestant
// is not close to Superstep's, the program fails and prints no times.
package main
