// Package mlp trains multilayer perceptrons: networks of hidden layers that predict a
// number or a class, over dense or sparse vectors, with row weights and classes of any
// type.
//
// # Training and predicting in a job
//
//	made := mlp.Train(rows, mlp.Params{
//		VectorCol: "features", LabelCol: "species", Task: mlp.Classification, Hidden: []int{16, 8}, L2: 1e-3,
//	})
//	guessed := mlp.Predict(rows, made, mlp.PredictOptions{})
//	engine.Collect(made, "model")
//
// Predict adds the column "prediction", of the type of the labels, and for a
// classification "probability", of each class in the order of Model.Classes. After the run
// the model is brought to the caller, used, kept and read again:
//
//	m, err := mlp.ModelOf(result, "model")
//	species := m.Classes.Values[int(m.Predict([]float64{5.1, 3.5, 1.4, 0.2}))]
//	err = m.Save("species.json")
//	m, err = mlp.Load("species.json")
//
// A Model needs no job, and any number of goroutines may use one.
//
// # What is computed
//
// Features are standardised on the fly and pass the layers: sums weighted by the layer's
// weights, with a bias, and for hidden layers the activation. The outputs are one sum, with
// half the squared difference as the loss, or probabilities, of two classes by the logistic
// function and of more by softmax, with the negative logarithm of that of the row's class.
// Training minimises the mean weighted loss and the
// penalty ½·L2·Σw² by L-BFGS, or by SGD; gradients go back through the layers (Rumelhart,
// Hinton and Williams, "Learning representations by back-propagating errors", Nature 323,
// 1986), for blocks of rows at a time, as products of matrices. The objective is not
// convex: the first weights, drawn from the seed, decide which optimum is found.
//
// The objective is that of scikit-learn's MLPClassifier and MLPRegressor with alpha =
// L2·rows.
//
// Of sparse rows with very many declared features the first layer is over those that
// occur; a feature that did not occur counts as 0.
//
// # The same bits
//
// A model is a function of the rows, their order, the number of shards, the parameters and
// the seed. Parallelism, batch sizes and processors change none of its bits. The first
// weights of a feature are a function of the seed, its number and the layer's units.
//
// # The plan
//
// Train adds the operator that checks rows, the queue of their facts, and the queue "mlp"
// of package optim. Files: params.go; network.go the layers; evaluator.go the objective;
// train.go; model.go and file.go the model; features.go, classes.go and predict.go how
// rows and labels reach it.
package mlp
