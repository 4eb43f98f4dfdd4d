// Package fm trains factorisation machines, for regression and classification. They model the
// interaction of two features by the inner product of the factors of the two features. So they
// also model pairs of features that never occur together in the training rows.
//
// # Training and predicting in a job
//
//	made := fm.Train(rows, fm.Params{VectorCol: "features", LabelCol: "rating", Factors: 8})
//	rated := fm.Predict(rows, made, fm.PredictOptions{})
//	engine.Collect(made, "model")
//
// Predict adds the column "prediction", and for a classification also the column "probability".
// After the run the caller takes the model from the result, uses it, saves it and loads it
// again:
//
//	m, err := fm.ModelOf(result, "model")
//	rating := m.PredictSparse([]int32{17, 4021}, []float64{1, 1})
//	err = m.Save("ratings.json")
//	m, err = fm.Load("ratings.json")
//
// A Model can be used without a job, and by any number of goroutines at the same time.
//
// # Computation
//
// The margin of a row x is w0 + Σ w[j]·x[j] + Σ over pairs i < j of ⟨v[i], v[j]⟩·x[i]·x[j]
// (Rendle, "Factorization Machines", ICDM 2010), computed in time proportional to the number of
// entries of the row times the number of factors. A regression predicts the margin; its loss is
// half the squared difference. In a classification, which has two classes, the margin is the
// log odds of the second class. Training minimises the mean weighted loss and the penalty by
// L-BFGS or by SGD, whose variant AdaGrad suits sparse rows. The objective is not convex: which
// optimum is found depends on the initial factors, which are drawn with the seed. Train does
// not scale features. Scale them beforehand if their magnitudes differ much. Always scale them
// for SGD: its default rates are for features with a standard deviation of 1, and with other
// features the loss usually grows until it is not finite.
//
// If sparse rows declare very many features, only the features that occur are trained. Other
// features add nothing to a prediction.
//
// # The same bits
//
// A model is a function of the rows, their order, the number of shards, the parameters and the
// seed. Parallelism, batch sizes and processors change none of its bits. The initial factors of
// a feature are a function of the seed and the feature's number.
//
// # Implementation
//
// Train adds the operator that checks rows, a queue that finds facts about all rows (package
// rows), and the queue "fm" of package optim. The files are params.go; machine.go with the
// arithmetic; loss.go with the loss; train.go; model.go with the model and its file; predict.go
// with prediction in a job.
package fm
