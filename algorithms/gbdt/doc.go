// Package gbdt trains gradient boosted decision trees on the rows of all subtasks, and predicts
// with the trained trees. Its objectives are for regression, classification, counts, times and
// rankings.
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
// Predict adds the column "prediction". For a classification this column has the type of the
// labels, and Predict adds a second column, "probability". After the run the caller can get the
// model, use it, save it and load it again:
//
//	m, err := gbdt.ModelOf(result, "model")
//	y := m.Predict([]float64{41, m.Code(1, "Oslo"), math.NaN()})
//	err = m.Save("bought.json")
//	m, err = gbdt.Load("bought.json")
//
// A Model can be used without a job, by any number of goroutines. Its field Ensemble computes
// the importance of features, draws trees and explains predictions; see package tree.
//
// # What is computed
//
// A row has a margin for each output. In every round boosting grows one tree for each output
// from the gradients and hessians of the objective at the current margins, and adds the leaf
// values of the tree to the margins (Friedman, "Greedy function approximation", Annals of
// Statistics 29, 2001; Chen and Guestrin, "XGBoost", KDD 2016). The margins of all rows start
// from the prior, the best constant. Numeric features are divided into at most 255 bins, whose
// bounds depend on the values in all rows. Missing values have their own bin, and each split
// learns to which side they go. Text is categorical, and so are the integers that
// CategoricalCols or CategoricalAt name. Each of up to 65,535 categories has its own bin. For
// each node, an analysis of variance of its rows estimates how far categories differ by more
// than chance, so that thousands of uninformative categories do no harm. A category without
// rows in the node goes to the side with the larger sum of weights.
//
//	objective                  margin                       prior
//	Squared                    mean                         mean
//	Absolute                   median                       median
//	Quantile                   quantile                     quantile
//	Huber                      between mean and median      median
//	Logistic                   log odds of the second class log odds
//	Softmax                    log odds of each class       log shares
//	Poisson, Gamma, Tweedie    log of the mean              log of the mean
//	AFT                        log of the time              mean of the logs
//	LambdaMART                 score within a query         0
//
// The second derivatives of Absolute, Quantile and Huber do not give the size of a step. So the
// leaf values of these objectives are renewed: a leaf gets the quantile of the residuals of its
// rows, found exactly among the rows of all subtasks. With monotone constraints the value is
// then cut to the range that the constraints allow.
//
// # Metrics
//
// After every round the metrics are measured on the training rows and on each evaluation set,
// reported, and kept in Summary.Record. Sums are taken within each shard, and then over shards
// in the order of a fixed tree. auc and aucpr depend on the order of rows and are exact:
// subtask 0 gathers the margin and the weight of every row, 16 bytes a row, and sorts them. On
// very large sets this takes longer than a round of training. Where rows have equal margins,
// ndcg and map take the mean over all orders of these rows.
//
// # The same bits
//
// A model depends only on the rows, the number of shards and the parameters. Parallelism, batch
// sizes and processors do not change any of its bits. Gradients, and the terms of priors, are
// summed as integers of 62 − ⌈log2 rows⌉ bits, with a scale that is chosen in each round. With
// 65,536 rows or more, splits are chosen by sums of integers of 17 bits; leaf values are still
// computed from the longer integers. So where no rows are drawn, neither the order of the rows
// nor the number of shards changes any tree. There are two exceptions: LambdaMART ranks rows of
// equal margins in the order in which they come, and the leaf values of Huber are sums of
// floats. Draws of rows depend only on seed, shard, round and row. A training that continues a
// model on the same rows makes the same trees as one uninterrupted training. With DART a model
// cannot be continued.
//
// # The plan
//
// Train adds the operators and the queue that bin rows, and the queue "gbdt", in which each
// superstep is a round. The files of the package are: params.go, validate.go and enums.go for
// the parameters; objective.go, deviance.go, aft.go and rank.go for the objectives; metric.go
// and order.go for the metrics; train.go for the queue; state.go for the state of a subtask,
// and kept.go for the part of it that checkpoints keep; prior.go, sample.go, dart.go, round.go,
// renew.go and measure.go for the stages of the queue, and select.go for quantiles; finish.go,
// model.go, features.go, further.go and file.go for the model; start.go, predict.go and
// batches.go for the operators that apply it; exchange.go and exchangeread.go for the models of
// other libraries.
package gbdt
