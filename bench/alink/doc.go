// Command alink compares training with this engine and with Alink, from a CSV file to a saved
// model.
//
//	go run ./bench/alink --alink bench/.alink
//	go run ./bench/alink --alink bench/.alink --problem gbdt --rounds 5 --threads 1,2
//	go run ./bench/alink --alink bench/.alink --json > bench/results/alink.json
//	go run ./bench/alink --rows 10000                     # ours alone, few rows
//
// # Installing Alink
//
// Alink 1.5.0 with Flink 1.13.6 runs on Java 17. Maven and the Java compiler install it in a
// folder. That takes 200 MB, and as much again in Maven's own folder:
//
//	mvn -f bench/alink/pom.xml dependency:copy-dependencies -DoutputDirectory=$PWD/bench/.alink/lib
//	javac -cp 'bench/.alink/lib/*' -d bench/.alink/classes bench/alink/AlinkTraining.java
//
// # What is compared
//
//   - kmeans: 1,000,000 rows of 16 features, drawn from 8 normal distributions, 10 clusters, 20
//     updates of the centres. Each side draws its own first centres from the rows, as Alink
//     does by default: Alink accepts no given centres, and its k-means|| takes much longer;
//   - logistic: 1,000,000 rows of 28 features, two classes, 20 iterations of L-BFGS on
//     standardised features with an intercept and without a penalty;
//   - gbdt: 100,000 rows of 28 features, two classes, 20 trees of depth 6, learning rate 0.1,
//     128 bins, at least 100 rows in a leaf, no penalty, gains of gradient and hessian.
//
// Both read the same CSV file, train at the same parallelism and save the model. Ours runs as
// the command superstep. Alink runs as the program AlinkTraining.java in Flink's local mode.
// Tolerances are set so that no training ends before its last iteration. Our k-means also ends
// when no centre moves.
//
// Every training is a process of its own. There are --rounds rounds. In each round all
// contestants take turns, in another order every round, so that a busy machine treats them
// alike.
//
// # The figures
//
// Wall time is the time from the start of the process to its end. For Alink it includes the
// start of Java and of Flink, which --rows 1000 shows almost alone. CPU is processor time in
// user and system mode. Peak memory is the largest resident size; for Alink it includes the
// heap that Java takes by default. The table has medians over the rounds. "times ours" is the
// median of the ratios to ours with as many threads in the same round.
//
// In the first round each contestant also predicts the rows with the model that it has saved.
// That is not timed. The predictions give the inertia of the clusters, or log-loss and AUC of
// the classes. If these are not close to ours, the program ends and prints no times.
package main
