// Package gmm fits mixtures of Gaussian distributions to points by expectation
// maximisation, with full, diagonal, spherical or shared covariances, and row weights.
//
// # Training and predicting in a job
//
//	mixture := gmm.Train(points, gmm.Params{VectorCol: "features", K: 3})
//	soft := gmm.Predict(points, mixture, gmm.PredictOptions{})
//	engine.Collect(mixture, "mixture")
//
// Train returns a dataset of one row that holds the model. Predict adds the columns
// "component", the most probable one, and "probabilities", of all of them. After the run
// the model is brought to the caller, used, kept and read again:
//
//	m, err := gmm.ModelOf(result, "mixture")
//	component, probability := m.Predict([]float64{5.1, 3.5})
//	err = m.Save("mixture.json")
//	m, err = gmm.Load("mixture.json")
//
// A Model needs no job, and any number of goroutines may use one.
//
// # What is computed
//
// The density of a point x is Σ w[c]·N(x; m[c], S[c]) over the K components. Training
// looks for weights w, means m and covariances S under which the rows are likely: it
// raises the mean over rows of the logarithm of the density, by expectation maximisation
// (Dempster, Laird and Rubin, Journal of the Royal Statistical Society B 39, 1977). A
// superstep computes the probability of each component for each row, with the largest
// exponent taken out of every sum, and reduces weight, first and second moments of each
// component, about its current mean, so that nothing is lost for data far from the
// origin. The likelihood never falls but by rounding and by what Regularization takes. Training
// ends when the mean log-likelihood rises by at most Tol, or after MaxIter updates; the
// model's likelihood is that of its own parameters.
//
// Where the first components come from decides which optimum is found: from k-means,
// from given means, from a column that assigns rows to components, or from a model; of
// several Restarts, each from a k-means of its own, the most likely mixture is returned.
//
// A component that loses all of its rows stays where it is, with weight 0, and is
// predicted no more. A covariance that rounding leaves without an inverse gets the least
// addition to its diagonal that helps; one of rows that are all the same point is an error
// where Regularization is off.
//
// # The same bits
//
// A model is a function of the rows, their order, the number of shards, the parameters
// and the seed. Parallelism, batch sizes and processors change none of its bits.
//
// # The plan
//
// Train adds the operator that checks rows, the queue of their facts, the queues of
// kmeans where that begins, and the queue "gmm", which reports "log-likelihood" per
// superstep, the mean over rows. Files: params.go; density.go and cholesky.go the mixture
// as arithmetic; train.go and em.go the queue; model.go and file.go the model; features.go
// and predict.go how rows reach it.
package gmm
