// Package selection compares estimators and their parameters. It divides rows into folds, and
// cross-validates any number of candidates in one job.
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
// KFold, Stratified and Split divide rows by a random permutation of their positions in the
// dataset, or of their positions among the rows with the same label. The sizes of the parts of
// KFold and Stratified differ by at most one row. The part to which a row belongs depends on
// the seed, on the position of the row and on the numbers of rows, but not on parallelism or
// the number of shards. Rows keep their shards and their order.
//
// # One job
//
// The source of the rows is read once, and each row is assigned to a part once. Every fold then
// selects its rows by their parts. The trainings of all folds and candidates run concurrently,
// and each holds its own training rows. Options.AtOnce limits the number of candidates that are
// trained at the same time. Results do not depend on it.
package selection
