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
// Predict adds the column "prediction", and for classes, of the type of the labels,
// "probability". After the run the model is brought to the caller, used, kept and read again:
//
//	m, err := gbdt.ModelOf(result, "model")
//	y := m.Predict([]float64{41, m.Code(1, "Oslo"), math.NaN()})
//	err = m.Save("bought.json")
//	m, err = gbdt.Load("bought.json")
//
// A Model needs no job, and any number of goroutines may use one. Its Ensemble tells what
// features count for, draws trees and explains predictions; see package tree.
//
// # What is computed
//
// Boosting adds trees to a margin of each row, one for each output in every round, by the
// gradients and hessians of the objective at the margins so far (Friedman, "Greedy function
// approximation", Annals of Statistics 29, 2001; Chen and Guestrin, "XGBoost", KDD 2016).
// Rows start from the prior, the best constant. Numbers are cut into at most 255 bins by the
// values of all rows, with one more for what is missing; where missing values go is learnt at
// each split. Text is categorical, and so are integers that are named so; each category, of
// up to 65,535, has a bin. How far categories differ by more than chance each node learns from
// its rows, by analysis of variance, so that thousands of categories that say nothing do no
// harm; those that no row of a node has go where more weight goes.
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
// Absolute, Quantile and Huber have second derivatives that say nothing. Their leaves are made
// anew: the quantile of what is left of the leaf's rows, found exactly among the rows of all
// subtasks. With monotone constraints it is kept within what these leave to the leaf.
//
// # Metrics
//
// After every round the metrics are measured on the rows that are trained on and on each
// evaluation set, reported, and kept in Summary.Record. Sums go by shard and up the tree over
// shards. Those of the order of rows, auc and aucpr, are exact: subtask 0 gathers margin and
// weight of every row, 16 bytes each, and sorts them, so on very large sets they cost more
// than a round does. ndcg and map take the mean over all orders of rows with equal margins.
//
// # The same bits
//
// A model is a function of the rows, the number of shards and the parameters: parallelism,
// batch sizes and processors change none of its bits. Gradients are summed as integers of
// 62 − ⌈log2 rows⌉ bits on a scale of the round (from 65,536 rows on, splits are chosen by
// sums of such of 17 bits, and leaves have the others), and so are those of priors, so that without drawn rows the order of the
// rows changes no tree either, nor does the number of shards, but with LambdaMART, in which
// rows of equal margins rank in their order, and Huber, whose leaves have sums of floats.
// Draws of rows are functions of seed, shard, round and row. Training that continues a model
// on the same rows makes the trees that it would have made in one go; with DART there is none.
//
// # The plan
//
// Train adds the operators and the queue that bin rows, and the queue "gbdt", of which a
// superstep is a round. Files: params.go, validate.go and enums.go; objective.go, deviance.go,
// aft.go and rank.go the objectives; metric.go and order.go the metrics; train.go the queue;
// state.go what a subtask holds, kept.go what of it is kept; prior.go, sample.go, dart.go,
// round.go, renew.go and measure.go its stages, select.go the quantiles; finish.go, model.go,
// features.go, further.go and file.go the model; start.go, predict.go and batches.go its
// operators; exchange.go and exchangeread.go the models of other libraries.
package gbdt
