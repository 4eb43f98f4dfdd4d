// Command chart draws how long other libraries take to train, as multiples of Superstep's time
// on a logarithmic scale. It reads the output of the comparisons:
//
//	go run ./bench/kmeans --python bench/.venv/bin/python --noise 0.7 --json > bench/results/kmeans.json
//	go run ./bench/trees --python bench/.venv/bin/python --problem dense --json > bench/results/trees.json
//	go run ./bench/alink --alink bench/.alink --json > bench/results/alink.json
//	go run ./bench/chart --kmeans bench/results/kmeans.json --trees bench/results/trees.json \
//	    --alink bench/results/alink.json --out docs/peers.svg
//
// Each bar is the median over rounds of the library's time divided by Superstep's time in the
// same round, both with --threads threads. There are three comparisons, which measure different
// times. The colour of a bar shows whether its times include reading a file:
//
//   - Alink: the whole process, from a CSV file to a saved model;
//   - scikit-learn: one pass of k-means over rows in memory, by the faster of its algorithms
//     lloyd and elkan in each round. The figures are from the first table in the file whose
//     rows are a mixture;
//   - XGBoost, LightGBM: training on rows in memory, for the problem "dense".
//
// If the flag for a file is left out, the picture has no bars of that comparison.
package main
