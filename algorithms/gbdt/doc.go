// Package gbdt trains gradient boosted decision trees, for regression, classification,
// counts, times and rankings, on the rows of all subtasks, and predicts with them.
//
// # Training and predicting in a job
//
//	made := gbdt.Train(rows, gbdt.Params{
//		Objective: gbdt.Logistic, FeatureCols: []string{"age", "city", "income"}, LabelCol: "bought",
//		EarlyStoppingRounds: 20, Metrics: []string{"logloss", "auc"},
//	}, gbdt.Set{Name: "test", Rows: held})
//	guessed := gbdt.Predict(rows, made, gbdt.PredictOptions{})
//	engine.Collect(made, "model")
//
// Predict adds the column "prediction". For classes it has the type of the labels, and a second
// column, "probability", is added. After the run the caller gets the model, uses it, saves it
// and reads it again:
//
//	m, err := gbdt.ModelOf(result, "model")
//	y := m.Predict([]float64{41, m.Code(1, "Oslo"), math.NaN()})
//	err = m.Save("bought.json")
//	m, err = gbdt.Load("bought.json")
//
// A Model needs no job, and any number of goroutines may use one. Its Ensemble gives the
// importance of features, draws trees and explains predictions; see package tree.
//
// # What is computed
//
// A row has a margin for each output. In every round boosting grows one tree for each output
// from the gradients and hessians of the objective at the margins so far, and adds it to them
// (Friedman, "Greedy function approximation", Annals of Statistics 29, 2001; Chen and Guestrin,
// "XGBoost", KDD 2016). Rows start from the prior, the best constant. Numbers are cut into at
// most 255 bins by the values of all rows. Missing values have a bin of their own, and each
// split learns to which side they go. Text is categorical, and so are integers where the
// parameters say so; each of up to 65,535 categories has a bin. Each node estimates from its
// rows, by analysis of variance, how far categories differ by more than chance, so that
// thousands of uninformative categories do no harm. Categories without a row in the node go to
// the side of the larger weight.
//
//	objective                  margin                       prior
//	Squared                    mean                         mean
//	Absolute, Quantile, Huber  median, quantile, in between median, quantile
//	Logistic                   log odds of the second class log odds
//	Softmax                    log odds of each class       log shares
//	Poisson, Gamma, Tweedie    log of the mean              log of the mean
//	AFT                        log of the time              mean of the logs
//	LambdaMART                 score within a query         0
//
// The second derivatives of Absolute, Quantile and Huber do not tell how far to step. So the
// values of their leaves are renewed: a leaf gets the quantile of the residuals of its rows,
// found exactly among the rows of all subtasks. With monotone constraints the value is cut to
// the range that these leave to the leaf.
//
// # Metrics
//
// After every round the metrics are measured on the training rows and on each evaluation set,
// reported, and kept in Summary.Record. Sums are taken by shard and then up the tree over
// shards. auc and aucpr depend on the order of rows and are exact: subtask 0 gathers the margin
// and the weight of every row, 16 bytes a row, and sorts them. On very large sets this costs
// more than a round. ndcg and map take the mean over all orders of rows with equal margins.
//
// # The same bits
//
// A model is a function of the rows, the number of shards and the parameters: parallelism,
// batch sizes and processors change none of its bits. Gradients, and the terms of priors, are
// summed as integers of 62 − ⌈log2 rows⌉ bits on a scale of the round. From 65,536 rows on,
// splits are chosen by sums of integers of 17 bits, and leaf values still come from the longer
// ones. So where no rows are drawn, neither the order of the rows nor the number of shards
// changes any tree. There are two exceptions: LambdaMART ranks rows of equal margins in their
// order, and the leaves of Huber have sums of floats. Draws of rows are functions of seed,
// shard, round and row. Training that continues a model on the same rows makes the trees that
// it would have made in one go. With DART a model cannot be continued.
//
// # The plan
//
// Train adds the operators and the queue that bin rows, and the queue "gbdt", in which each
// superstep is a round. Files: params.go, validate.go and enums.go; objective.go, deviance.go,
// aft.go and rank.go the objectives; metric.go and order.go the metrics; train.go the queue;
// state.go the state of a subtask, kept.go the part of it that checkpoints keep; prior.go,
// sample.go, dart.go, round.go, renew.go and measure.go its stages, select.go the quantiles;
// finish.go, model.go, features.go, further.go and file.go the model; start.go, predict.go and
// batches.go its operators; exchange.go and exchangeread.go the models of other libraries.
package gbdt
