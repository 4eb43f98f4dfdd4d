// Package gmm fits mixtures of Gaussian distributions to points by expectation
// maximisation, with full, diagonal, spherical or shared covariances, and row weights.
//
// # Training and predicting in a job
//
//	mixture := gmm.Train(points, gmm.Params{VectorCol: "features", K: 3})
//	soft := gmm.Predict(points, mixture, gmm.PredictOptions{})
//	engine.Collect(mixture, "mixture")
//
// Train returns a dataset of one row that holds the model. Predict adds the column "component",
// the most probable one, and the column "probabilities", of all components. After the run the
// caller takes the model from the result, uses it, saves it and loads it again:
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
// The density of a point x is Σ w[c]·N(x; m[c], S[c]) over the K components. Training maximises
// the mean log-density of the rows over weights w, means m and covariances S, by expectation
// maximisation (Dempster, Laird and Rubin, Journal of the Royal Statistical Society B 39,
// 1977). A superstep computes the probability of each component for each row, with the
// log-sum-exp trick. It then reduces the weight and the first and second moments of each
// component. Moments are about the component's current mean, so that data far from the origin
// lose no precision. The likelihood never falls, except by rounding and by Regularization.
// Training ends when the mean log-likelihood rises by at most Tol, or after MaxIter updates.
// The model's likelihood is for its final parameters.
//
// The initial components decide which optimum is found. They come from k-means, from given
// means, from a column that assigns rows to components, or from a model. Each of several
// Restarts begins with its own k-means, and the most likely mixture is returned.
//
// A component that loses all of its rows keeps its mean, with weight 0, and is not predicted.
// If rounding makes a covariance singular, the smallest of a sequence of numbers that gives it
// an inverse is added to its diagonal. Without Regularization, a component whose rows are all
// the same point is an error.
//
// # The same bits
//
// A model is a function of the rows, their order, the number of shards, the parameters
// and the seed. Parallelism, batch sizes and processors change none of its bits.
//
// # The plan
//
// Train adds the operator that checks rows, the queue of their facts, the queues of package
// kmeans if it gives the initial components, and the queue "gmm". That reports
// "log-likelihood", the mean over rows, for each superstep. Files: params.go; density.go and
// cholesky.go the arithmetic of the mixture; train.go and em.go the queue; model.go the model;
// file.go its file; predict.go prediction in a job.
package gmm
