// Command chart draws how long other libraries take to train, as multiples of Superstep's time
// on a logarithmic scale. It reads the output of the comparisons:
//
//	go run ./bench/kmeans --python bench/.venv/bin/python --noise 0.7 --json > bench/results/kmeans.json
//	go run ./bench/trees --python bench/.venv/bin/python --problem dense --json > bench/results/trees.json
//	go run ./bench/alink --alink bench/.alink --json > bench/results/alink.json
//	go run ./bench/chart --kmeans bench/results/kmeans.json --trees bench/results/trees.json \
//	    --alink bench/results/alink.json --out docs/peers.svg
//
// Each bar is the median over rounds in which both took turns, with --threads threads. The
// times measure different things, which colours tell apart:
//
//   - Alink: the whole process, from a CSV file to a saved model;
//   - scikit-learn: one pass of k-means over rows in memory, by the faster of its two
//     algorithms, on the first table of a mixture in the file;
//   - XGBoost, LightGBM: training on rows in memory, for the problem "dense".
//
// Without a file there are no bars of its comparison.
package main
