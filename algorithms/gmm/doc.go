// Package gmm fits mixtures of Gaussian distributions to points by expectation
// maximisation, with full, diagonal, spherical or shared covariances, and row weights.
//
// # Training and predicting in a job
//
//	mixture := gmm.Train(points, gmm.Params{VectorCol: "features", K: 3})
//	soft := gmm.Predict(points, mixture, gmm.PredictOptions{})
//	engine.Collect(mixture, "mixture")
//
// Train returns a dataset of one row that holds the model. Predict adds the column "component"
// with the most probable component, and the column "probabilities" with the probabilities of
// all components. After the run the caller takes the model from the result, uses it, saves it
// and loads it again:
//
//	m, err := gmm.ModelOf(result, "mixture")
//	component, probability := m.Predict([]float64{5.1, 3.5})
//	err = m.Save("mixture.json")
//	m, err = gmm.Load("mixture.json")
//
// A Model can be used without a job, and by any number of goroutines at the same time.
//
// # Computation
//
// The density of a point x is Σ w[c]·N(x; m[c], S[c]) over the K components. Training maximises
// the mean log-density of the rows over weights w, means m and covariances S, by expectation
// maximisation (Dempster, Laird and Rubin, Journal of the Royal Statistical Society B 39,
// 1977). A superstep computes the probability of each component for each row, with the
// log-sum-exp trick. It then reduces the weight and the first and second moments of each
// component. Moments are taken about the component's current mean, so that data far from the
// origin lose no precision. The likelihood never falls, except by rounding and by
// Regularization. Training ends when the mean log-likelihood rises by at most Tol, or after
// MaxIter updates. The model's LogLikelihood is the log-likelihood of its final parameters.
//
// Which optimum is found depends on the initial components. They come from k-means, from given
// means, from a column that assigns rows to components, or from a model. With several Restarts,
// each begins with its own k-means, and the mixture with the highest likelihood is returned.
//
// A component that loses all of its rows keeps its mean, gets weight 0, and is not predicted.
// If rounding makes a covariance singular, a number is added to its diagonal: the smallest of a
// sequence of numbers that makes it invertible. Without Regularization, it is an error if all
// rows of a component are the same point.
//
// # The same bits
//
// A model is a function of the rows, their order, the number of shards, the parameters
// and the seed. Parallelism, batch sizes and processors change none of its bits.
//
// # Implementation
//
// Train adds the operator that checks rows, a queue that finds facts about all rows (package
// rows), the queues of package kmeans if k-means computes the initial components, and the queue
// "gmm". The queue "gmm" reports "log-likelihood", the mean over rows, for each superstep. The
// files are params.go; density.go and cholesky.go with the arithmetic of the mixture; train.go
// and em.go with the queue; model.go with the model; file.go with its file; predict.go with
// prediction in a job.
package gmm
