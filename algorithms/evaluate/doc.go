// Package evaluate measures predictions: of two classes, of several, of numbers, of
// clusters and of ranked lists.
//
// # In a job
//
// An evaluation takes the rows that a model has predicted, and returns a dataset of one
// row: the report.
//
//	report := evaluate.Binary(predicted, evaluate.BinaryOptions{LabelCol: "label", ScoreCol: "probability"})
//	engine.Collect(report, "quality")
//	engine.Collect(evaluate.Curve(report), "roc")
//	…
//	r, err := evaluate.ReportOf[evaluate.BinaryReport](result, "quality")
//	fmt.Println(r.AUC, r)
//
// The row has every number of the report as a column of its own, such as "auc", and the
// whole of it as JSON in the column "report".
//
// # Without one
//
// MeasureBinary, MeasureMulticlass, MeasureRegression, MeasureClustering and MeasureRanking
// take slices and give the same reports, with the same bits.
//
// # What reports depend on
//
// On the rows alone: on their values, labels and weights, and not on their order, on
// where they lie, or on the number of shards. Sums over rows are exact and rounded once;
// what needs the rows in order of their scores goes over the distinct ones and adds the
// weights of equal scores exactly too. It also means that nothing cancels: variances and
// silhouettes of data far from zero are as good as those of data near it.
//
// # What has no value
//
// A measure that is not defined for the rows at hand, such as the area under the ROC curve
// when all of them are of one class, is NaN, and the report's Undefined says why. It is not
// an error, since other measures are defined. In JSON a NaN is null. The same goes for what
// exceeds the range of float64: no measure is an infinity.
//
// A null, NaN or infinity in a column that is read is an error that names row and column,
// unless Skip is set. A negative weight is always one.
//
// # Memory
//
// Rows are not held but for the values that must be put in order: Binary and Regression
// hold 24 bytes a row of one shard at a time (of distinct scores, once these have been
// brought together), Ranking the lists of a shard. The exact silhouette holds all rows.
package evaluate
