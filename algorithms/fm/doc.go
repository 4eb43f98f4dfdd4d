// Package fm trains factorisation machines: regressions and classifiers in which all pairs
// of features act together, by factors of each feature, also where most pairs never occur.
//
// # Training and predicting in a job
//
//	made := fm.Train(rows, fm.Params{VectorCol: "features", LabelCol: "rating", Factors: 8})
//	rated := fm.Predict(rows, made, fm.PredictOptions{})
//	engine.Collect(made, "model")
//
// Predict adds the column "prediction", and for a classification "probability". After the
// run the model is brought to the caller, used, kept and read again:
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
// (Rendle, "Factorization Machines", ICDM 2010), in time in proportion to the entries of
// the row times the factors. A regression predicts it, with half the squared difference as
// the loss; a classification of two classes takes it as the log odds of the second one.
// Training minimises the mean weighted loss and the penalty by L-BFGS, or by SGD, of which
// AdaGrad suits sparse rows. The objective is not convex: the first factors, drawn from
// the seed, decide which optimum is found. Features are taken as they are. Scale those of
// very different sizes before, all of them for SGD: its default rates are for features of
// spread 1, and with others the loss mostly grows until it is no number.
//
// Of sparse rows with very many declared features training runs over those that occur; a
// feature that did not occur adds nothing to a prediction.
//
// # The same bits
//
// A model is a function of the rows, their order, the number of shards, the parameters and
// the seed. Parallelism, batch sizes and processors change none of its bits. The first
// factors of a feature are a function of the seed and its number.
//
// # The plan
//
// Train adds the operator that checks rows, the queue of their facts, and the queue "fm" of
// package optim. Files: params.go; machine.go the arithmetic; evaluator.go the objective;
// train.go; model.go the model and its file; features.go, classes.go and predict.go how
// rows and labels reach it.
package fm
