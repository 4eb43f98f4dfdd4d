// Package selection compares ways to train: it divides rows into folds, and cross-validates
// any number of candidates, all in one job.
//
//	candidates := selection.Grid(kmeans.Params{VectorCol: "x"}, stageOf,
//		selection.Over("k", func(p *kmeans.Params, k int) { p.K = k }, 2, 3, 4))
//	found := selection.CrossValidate(rows, candidates, selection.Options{
//		Metrics: selection.Clustering(evaluate.ClusteringOptions{VectorCol: "x", ClusterCol: "cluster"}, "silhouette"),
//		K: 5, Refit: true,
//	})
//	engine.Collect(found.Scores, "scores")
//	engine.Collect(found.Best, "model")
//	…
//	table, err := selection.TableOf(result, "scores")
//	fmt.Print(table)
//
// A candidate is any model.Stage: the parameters of an estimator, or a pipeline.
//
// # Folds
//
// KFold, Stratified and Split divide rows by a random permutation of their places in the
// dataset, or of their places among the rows with the same label. Sizes of parts differ by
// at most one row. Where a row goes depends on the seed and on the rows before it, not on
// parallelism nor on the number of shards. Rows stay in their shards and in their order.
//
// # One job
//
// The rows are read from one source and numbered once; every fold picks its own. The
// trainings of all folds and candidates then run side by side, and each holds the rows that
// it trains on. Options.AtOnce bounds how many do so at once. Results do not depend on it.
package selection
