// Package glm trains generalised linear models by iteratively reweighted least squares:
// of values with the normal, binomial, Poisson, gamma and Tweedie distributions.
//
//	made := glm.Train(rows, glm.Params{LabelCol: "claims", OffsetCol: "log_years", Family: glm.Poisson})
//	engine.Collect(made, "model")
//	predicted := glm.Predict(rows, made, glm.PredictOptions{})
//	...
//	m, err := glm.ModelOf(result, "model")
//	mean := m.Predict(x)                           // no engine, concurrent, no allocation
//	for _, term := range m.Summary.Inference.Terms { ... }
//
// # What is minimised
//
// The mean μ of a row's label has the link g(μ) = w·x + c (+ offset). With row weights u
// and unit deviances d of the family,
//
//	Σ u·½·d(y, μ) / Σ u + L1·Σ |s·w| + ½·L2·Σ (s·w)²
//
// where s is the standard deviation of the feature, or 1 with NoStandardize, so that by
// default a penalty does not depend on the units of features. The intercept c is not
// penalised, and coefficients are those of the features as they are in any case.
// scikit-learn's PoissonRegressor, GammaRegressor and TweedieRegressor of alpha have L2 =
// alpha and NoStandardize. (Its C of other models would be L2 = 1/(C·W), with W the total
// weight.)
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
// Counts that were made over different times, areas or numbers are given with the logarithm
// of these as offset, or as rates, counts divided by them, with these as weights: with the
// link Log the coefficients of Poisson are the same, and so are their standard errors.
//
// # How
//
// Newton's method with the expected second derivatives, the Fisher information, is
// iteratively reweighted least squares, here with a line search: a step that leads to a mean
// which the family does not have, such as one below 0, is shortened. It starts at the mean
// of all labels. Of Gamma and Tweedie with the link Log the steps are made of the second
// derivatives themselves where these are positive, as they always are with a power up to 2:
// where labels are far from their means, those expected take several times as many steps, of
// which each leaves the same part of the error. L-BFGS takes over beyond 256 features, and
// OWL-QN where there is an L1 penalty; package optim has the references.
//
// # Dispersion, standard errors, AIC
//
// Without a penalty the summary has the table of standard errors from the Fisher information
// at the optimum. Where the dispersion is known to be 1, of Binomial and Poisson, it has z
// statistics and p values by the normal distribution; else the dispersion is estimated by
// Pearson's statistic over the residual degrees of freedom, rows less coefficients, and it
// has t statistics and p values by Student's distribution. Columns that are constant, or
// that others determine, are no error: the table says which they are. Deviance, null
// deviance, dispersion and AIC are among the summary's measures, by the conventions of R's
// glm: the null model is fitted with the offset. NoInference leaves out what all this takes
// beyond the coefficients.
package glm
