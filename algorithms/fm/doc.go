// Package fm trains factorisation machines, for regression and classification. They model the
// interaction of every pair of features by factors of each feature, also where most pairs never
// occur.
//
// # Training and predicting in a job
//
//	made := fm.Train(rows, fm.Params{VectorCol: "features", LabelCol: "rating", Factors: 8})
//	rated := fm.Predict(rows, made, fm.PredictOptions{})
//	engine.Collect(made, "model")
//
// Predict adds the column "prediction", and for a classification "probability". After the run
// the caller takes the model from the result, uses it, saves it and loads it again:
//
//	m, err := fm.ModelOf(result, "model")
//	rating := m.PredictSparse([]int32{17, 4021}, []float64{1, 1})
//	err = m.Save("ratings.json")
//	m, err = fm.Load("ratings.json")
//
// A Model needs no job, and any number of goroutines may use one.
//
// # What is computed
//
// The margin of a row x is w0 + Σ w[j]·x[j] + Σ over pairs i < j of ⟨v[i], v[j]⟩·x[i]·x[j]
// (Rendle, "Factorization Machines", ICDM 2010), computed in time proportional to the entries
// of the row times the factors. A regression predicts the margin; its loss is half the squared
// difference. A classification of two classes takes the margin as the log odds of the second
// class. Training minimises the mean weighted loss and the penalty by L-BFGS or by SGD, whose
// variant AdaGrad suits sparse rows. The objective is not convex: the initial factors, drawn
// with the seed, decide which optimum is found. Features are not scaled. Scale them before if
// their sizes differ much. For SGD always scale them: its default rates are for features of
// standard deviation 1, and with others the loss mostly grows until it is not finite.
//
// Where sparse rows declare very many features, only those that occur are trained. A feature
// that did not occur adds nothing to a prediction.
//
// # The same bits
//
// A model is a function of the rows, their order, the number of shards, the parameters and the
// seed. Parallelism, batch sizes and processors change none of its bits. The initial factors of
// a feature are a function of the seed and the feature's number.
//
// # The plan
//
// Train adds the operator that checks rows, the queue of their facts, and the queue "fm" of
// package optim. Files: params.go; machine.go the arithmetic; loss.go the loss; train.go;
// model.go the model and its file; predict.go prediction in a job.
package fm
