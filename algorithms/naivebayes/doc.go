// Package naivebayes trains naive Bayes classifiers: Gaussian, multinomial, complement and
// Bernoulli, over dense or sparse vectors, with row weights and classes of any type.
//
// # Training and predicting in a job
//
//	made := naivebayes.Train(rows, naivebayes.Params{VectorCol: "features", LabelCol: "species"})
//	guessed := naivebayes.Predict(rows, made, naivebayes.PredictOptions{})
//	engine.Collect(made, "model")
//
// Predict adds the columns "prediction", of the type of the labels, and "probability", of
// each class in the order of Model.Classes. After the run the model is brought to the
// caller, used, kept and read again:
//
//	m, err := naivebayes.ModelOf(result, "model")
//	species := m.Classes.Values[m.Predict([]float64{5.1, 3.5, 1.4, 0.2})]
//	err = m.Save("species.json")
//	m, err = naivebayes.Load("species.json")
//
// A Model needs no job, and any number of goroutines may use one.
//
// # What is computed
//
// The probability of a class is in proportion to its prior times the likelihood of the
// row's features, which are taken as independent of each other within a class:
//
//	Gaussian     normal distributions, of the mean and variance of the class's rows
//	Multinomial  counts of draws, a feature as likely as its smoothed share of them
//	Complement   as Multinomial, but against the rows of all other classes
//	Bernoulli    presence or absence of each feature
//
// With the same parameters the probabilities are those of scikit-learn's classes of these
// names, whose alpha is Smoothing and whose var_smoothing is VarSmoothing; but the largest
// variance of a feature, which VarSmoothing refers to, takes account of row weights.
//
// Training reads the rows once, for Gaussian twice: variances are about the means of the
// classes, so that classes that lie far apart lose nothing. Of sparse rows with very many
// declared features the model keeps those that occur.
//
// # The same bits
//
// A model is a function of the rows, their order, the number of shards and the parameters.
// Parallelism, batch sizes and processors change none of its bits.
//
// # The plan
//
// Train adds the operator that checks rows, the queue of their facts, and the queue
// "naivebayes". Files: params.go; train.go the queue; model.go the model and its file;
// features.go, classes.go and predict.go how rows and labels reach it.
package naivebayes
