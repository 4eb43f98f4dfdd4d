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
// The row has every number of the report as a column of its own, such as "auc". The column
// "report" has the whole report as JSON.
//
// # Without one
//
// MeasureBinary, MeasureMulticlass, MeasureRegression, MeasureClustering and MeasureRanking
// take slices and give the same reports, with the same bits.
//
// # What reports depend on
//
// Reports depend on the rows alone: on their values, labels and weights. They do not depend
// on the order of rows, on where rows lie, or on the number of shards. Sums over rows are
// exact and rounded once. Measures that need rows sorted by score go over the distinct
// scores, and add the weights of equal scores exactly. Exact sums also avoid cancellation:
// variances and silhouettes of data far from zero are as good as those of data near zero.
//
// # What has no value
//
// A measure that is not defined for the rows at hand, such as the area under the ROC curve
// when all of them are of one class, is NaN, and the report's Undefined says why. It is not
// an error, since other measures are defined. In JSON a NaN is null. A measure that exceeds
// the range of float64 is NaN too: no measure is an infinity.
//
// A null, NaN or infinity in a column that is read is an error that names row and column,
// unless Skip is set. A negative weight is always an error.
//
// # Memory
//
// Evaluations do not hold rows, only values that they must sort. Binary and Regression hold
// 24 bytes a row, of one shard at a time; after grouping, 24 bytes a distinct score. Ranking
// holds the lists of a shard. The exact silhouette holds all rows.
package evaluate
