// Command alink compares training on this engine with Alink's, from a CSV file to a saved model.
//
//	go run ./bench/alink --alink bench/.alink
//	go run ./bench/alink --alink bench/.alink --problem gbdt --rounds 5 --threads 1,2
//	go run ./bench/alink --alink bench/.alink --json > bench/results/alink.json
//	go run ./bench/alink --rows 10000                     # ours alone, few rows
//
// # Installing Alink
//
// Alink 1.5.0 with Flink 1.13.6 runs on Java 17. Maven and the compiler of Java install it in a
// folder, which takes 200 MB there and as much in that of Maven:
//
//	mvn -f bench/alink/pom.xml dependency:copy-dependencies -DoutputDirectory=$PWD/bench/.alink/lib
//	javac -cp 'bench/.alink/lib/*' -d bench/.alink/classes bench/alink/AlinkTraining.java
//
// # What is compared
//
//   - kmeans: 1,000,000 rows of 16 features, drawn from 8 normal distributions, 10 clusters,
//     20 updates of the centres; the first are rows that each side draws for itself, as Alink
//     does by default: it takes none that are given, and its k-means|| takes much longer;
//   - logistic: 1,000,000 rows of 28 features, two classes, 20 iterations of L-BFGS on
//     standardised features with an intercept and without a penalty;
//   - gbdt: 100,000 rows of 28 features, two classes, 20 trees of depth 6, learning rate 0.1,
//     128 bins, at least 100 rows in a leaf, no penalty, gains of gradient and hessian.
//
// Both read the same CSV file, train at the same parallelism and save the model: ours by the
// command superstep, Alink by the program AlinkTraining.java in Flink's local mode. No tolerance
// ends a training before its iterations are made; k-means of ours ends, too, when no centre moves.
//
// Every training is a process of its own. Rounds are as many as --rounds says; in each all
// contestants take turns, in another order every round, so that a busy machine treats them
// alike.
//
// # The figures
//
// Wall time is that of the whole process, from its start to its end. For Alink the start of Java
// and of Flink is in it, which --rows 1000 shows nearly alone. CPU is processor time in user and
// in system mode, peak memory what was resident at most, for Alink with the heap that Java takes
// by itself. The table has medians over the rounds; "times ours" are medians of the ratios to
// ours with as many threads in the same round.
//
// In the first round each contestant also predicts the rows with the model that it has saved,
// which is not timed. From that come the inertia of the clusters, or log-loss and AUC of the
// classes. Where these are not about those of ours the program ends and prints no times.
package main
