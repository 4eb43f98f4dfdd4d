// Package glm trains generalised linear models by iteratively reweighted least squares. Labels
// have a normal, binomial, Poisson, gamma or Tweedie distribution.
//
//	made := glm.Train(rows, glm.Params{LabelCol: "claims", OffsetCol: "log_years", Family: glm.Poisson})
//	engine.Collect(made, "model")
//	predicted := glm.Predict(rows, made, glm.PredictOptions{})
//	...
//	m, err := glm.ModelOf(result, "model")
//	mean := m.Predict(x)                           // no engine, concurrent, no allocation
//	for _, term := range m.Summary.Inference.Terms { ... }
//
// # Objective
//
// The mean μ of a row's label has the link g(μ) = w·x + c (+ offset). Training minimises, with
// row weights u and unit deviances d of the family,
//
//	Σ u·½·d(y, μ) / Σ u + L1·Σ |s·w| + ½·L2·Σ (s·w)²
//
// where s is the standard deviation of the feature, or 1 with NoStandardize. So by default a
// penalty does not depend on the units of features. The intercept c is not penalised.
// Coefficients are always for unscaled features. scikit-learn's alpha of PoissonRegressor,
// GammaRegressor and TweedieRegressor corresponds to L2 = alpha with NoStandardize.
//
//	family    variance   links, the first by default
//	Gaussian  1          identity, log
//	Binomial  μ·(1−μ)    logit, log, identity
//	Poisson   μ          log, identity
//	Gamma     μ²         log, inverse, identity
//	Tweedie   μ^Power    log, identity
//
// # Exposure
//
// Counts may be observed over different times, areas or numbers of units: their exposures.
// There are two ways to take exposures into account. One is to give the logarithm of the
// exposure as offset. The other is to give rates, which are counts divided by exposures, with
// the exposures as weights. With the family Poisson and the link Log, both ways give the same
// coefficients and standard errors.
//
// # Methods
//
// Newton's method with the expected second derivatives, the Fisher information, is iteratively
// reweighted least squares. This package adds a line search: a step is shortened if it leads to
// a mean that the family cannot have, such as a mean below 0. Training starts at the mean of
// all labels. For Gamma and Tweedie with the link Log, steps use the actual second derivatives
// where these are positive, as they always are with a power up to 2. If labels are far from
// their means, the expected second derivatives would need several times as many steps. With
// more than 256 features L-BFGS is used, and with an L1 penalty OWL-QN; package optim cites the
// papers.
//
// # Dispersion, standard errors, AIC
//
// Without a penalty the summary has the table of standard errors from the Fisher information at
// the optimum. For Binomial and Poisson the dispersion is known to be 1, and the table has z
// statistics and p values by the normal distribution. For the other families the dispersion is
// estimated as Pearson's statistic over the residual degrees of freedom, rows less
// coefficients, and the table has t statistics and p values by Student's distribution. Columns
// that are constant, or linear combinations of other columns, are not an error; the table names
// them. Deviance, null deviance, dispersion and AIC are among the summary's measures, by the
// conventions of R's glm: the null model is fitted with the offset. NoInference omits
// everything that needs more reads of the rows than the coefficients do.
package glm
