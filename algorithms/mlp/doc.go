// Package mlp trains multilayer perceptrons: networks with hidden layers, for regression and
// classification. Features are dense or sparse, rows may have weights, and classes may have any
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
// Predict adds the column "prediction", of the type of the labels. For a classification it also
// adds "probability", with the probability of each class in the order of Model.Classes. After
// the run the caller takes the model from the result, uses it, saves it and loads it again:
//
//	m, err := mlp.ModelOf(result, "model")
//	species := m.Classes.Values[int(m.Predict([]float64{5.1, 3.5, 1.4, 0.2}))]
//	err = m.Save("species.json")
//	m, err = mlp.Load("species.json")
//
// A Model can be used without a job, and by any number of goroutines at the same time.
//
// # Computation
//
// Features are standardised as they are read, and pass through the layers. Each unit computes
// the sum of its inputs times weights, plus a bias. Hidden units apply the activation function
// to this sum. A regression has one output, and its loss is half the squared difference. The
// outputs of a classification give probabilities: for two classes by the logistic function, for
// more classes by softmax. The loss of a classification is the negative logarithm of the
// probability of the row's class. Training minimises the mean weighted loss and the penalty
// ½·L2·Σw² by L-BFGS or by SGD. Gradients are computed by back-propagation (Rumelhart, Hinton
// and Williams, "Learning representations by back-propagating errors", Nature 323, 1986). It is
// computed for a block of rows at a time, by products of matrices. The objective is not convex.
// Which optimum is found depends on the initial weights, which are drawn with the seed.
//
// For n rows, the objective equals the objective of scikit-learn's MLPClassifier and
// MLPRegressor with alpha = L2·n.
//
// If sparse rows declare very many features, the first layer reads only the features that occur
// in training. Other features are treated as 0.
//
// # The same bits
//
// A model is a function of the rows, their order, the number of shards, the parameters and the
// seed. Parallelism, batch sizes and processors do not change any bit of the model. The initial
// weights of a feature are a function of the seed, the feature's number and the layer's units.
//
// # Implementation
//
// Train adds the operator that checks rows, the queue that computes the facts about the rows,
// and the queue "mlp" of package optim. The files are params.go; network.go with the layers;
// loss.go with the loss; train.go; model.go with the model; file.go with its file; predict.go
// with prediction in a job.
package mlp
