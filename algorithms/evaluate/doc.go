// Package evaluate measures the quality of predictions: of two classes, of several classes, of
// numbers, of clusters and of ranked lists.
//
// # In a job
//
// An evaluation takes the rows with the predictions of a model, and returns a dataset of one
// row, the report:
//
//	report := evaluate.Binary(predicted, evaluate.BinaryOptions{LabelCol: "label", ScoreCol: "probability"})
//	engine.Collect(report, "quality")
//	engine.Collect(evaluate.Curve(report), "roc")
//	…
//	r, err := evaluate.ReportOf[evaluate.BinaryReport](result, "quality")
//	fmt.Println(r.AUC, r)
//
// The row has a column for every number of the report, such as "auc". The column "report" has
// the whole report as JSON.
//
// # Without a job
//
// MeasureBinary, MeasureMulticlass, MeasureRegression, MeasureClustering and MeasureRanking
// take slices. Their reports have the same bits as the reports of a job.
//
// # What reports depend on
//
// Reports depend on the rows alone: on their values, labels and weights. They do not depend on
// the order of the rows, on their distribution over shards, or on the number of shards. Sums
// over rows are exact and are rounded once. Measures that need rows sorted by score are
// computed from the distinct scores, and the weights of equal scores are added exactly. Exact
// sums also avoid cancellation: variances and silhouettes of data far from zero are as precise
// as those of data near zero.
//
// # Undefined measures
//
// A measure may be undefined for the given rows. An example is the area under the ROC curve
// when all rows are of one class. Such a measure is NaN, and the report's Undefined gives the
// reason. It is not an error, since other measures may be defined. In JSON a NaN is null. A
// measure that exceeds the range of float64 is NaN too: no measure is infinite.
//
// A null, NaN or infinity in a column that is read is an error that names row and column,
// unless Skip is set. A negative weight is always an error.
//
// # Memory
//
// Evaluations do not hold rows, only the values that they must sort. Binary and Regression hold
// 24 bytes for each row of one shard at a time. After grouping they hold 24 bytes for each
// distinct value. Ranking holds the lists of one shard. The exact silhouette holds all rows.
package evaluate
