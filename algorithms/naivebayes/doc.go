// Package naivebayes trains naive Bayes classifiers: Gaussian, multinomial, complement and
// Bernoulli, over dense or sparse vectors, with row weights and classes of any type.
//
// # Training and predicting in a job
//
//	made := naivebayes.Train(rows, naivebayes.Params{VectorCol: "features", LabelCol: "species"})
//	guessed := naivebayes.Predict(rows, made, naivebayes.PredictOptions{})
//	engine.Collect(made, "model")
//
// Predict adds the column "prediction", of the type of the labels, and the column
// "probability", with the probability of each class in the order of Model.Classes. After the
// run the caller takes the model from the result, uses it, saves it and loads it again:
//
//	m, err := naivebayes.ModelOf(result, "model")
//	species := m.Classes.Values[m.Predict([]float64{5.1, 3.5, 1.4, 0.2})]
//	err = m.Save("species.json")
//	m, err = naivebayes.Load("species.json")
//
// A Model can be used without a job, and by any number of goroutines at the same time.
//
// # Computation
//
// The probability of a class is proportional to its prior times the likelihood of the row's
// features. Features are assumed to be independent of each other within a class:
//
//	Gaussian     normal distributions with the mean and variance of the class's rows
//	Multinomial  numbers of draws of each feature, with the feature's smoothed share of all draws
//	Complement   like Multinomial, but with the counts of the rows of all other classes
//	Bernoulli    the presence or absence of each feature
//
// With the same parameters, the probabilities equal those of scikit-learn's classes of these
// names, where alpha is Smoothing and var_smoothing is VarSmoothing. There is one difference:
// the largest variance of a feature, by which VarSmoothing is multiplied, takes row weights
// into account.
//
// Training reads the rows once, and for Gaussian twice. The second read sums squared
// differences from the means of the classes, so that variances are accurate even if the means
// of the classes are far apart. If sparse rows declare very many features, the model has only
// the features that occur.
//
// # The same bits
//
// A model is a function of the rows, their order, the number of shards and the parameters.
// Parallelism, batch sizes and processors do not change any bit of the model.
//
// # Implementation
//
// Train adds the operator that checks rows, the queue that computes the facts about the rows,
// and the queue "naivebayes". The files are params.go; train.go with the queue; model.go with
// the model and its file; predict.go with prediction in a job.
package naivebayes
