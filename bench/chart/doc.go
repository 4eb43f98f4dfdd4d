// Command chart draws how long other libraries take to train, as multiples of Superstep's time,
// on a logarithmic scale, from what the comparisons have measured:
//
//	go run ./bench/kmeans --python bench/.venv/bin/python --noise 0.7 --json > bench/results/kmeans.json
//	go run ./bench/trees --python bench/.venv/bin/python --problem dense --json > bench/results/trees.json
//	go run ./bench/alink --alink bench/.alink --json > bench/results/alink.json
//	go run ./bench/chart --kmeans bench/results/kmeans.json --trees bench/results/trees.json \
//	    --alink bench/results/alink.json --out docs/peers.svg
//
// Each bar is the median of the ratios of rounds in which both took turns, with as many threads
// as --threads says. What the time is of differs, and colours tell which it is:
//
//   - Alink: of the whole process, from a CSV file to a saved model;
//   - scikit-learn: of a pass of k-means over rows in memory, by the quicker of its two
//     algorithms, on the first rows of the file that are a mixture;
//   - XGBoost, LightGBM: of training on rows in memory, on those of the problem "dense".
//
// A file that is not given has no bars.
package main
