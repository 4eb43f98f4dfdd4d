// Package linear trains linear regressions: least squares, ridge, lasso, elastic net, and
// Huber's for labels with outliers.
//
//	made := linear.Train(rows, linear.Params{LabelCol: "price"})                  // least squares
//	made := linear.Train(rows, linear.Ridge(0.1, linear.Params{LabelCol: "price"}))
//	engine.Collect(made, "model")
//	predicted := linear.Predict(rows, made, linear.PredictOptions{})
//	...
//	m, err := linear.ModelOf(result, "model")
//	y := m.Predict([]float64{70, 3})               // no engine, concurrent, no allocation
//
// # What is minimised
//
// With row weights u and residuals r of w·x + c (+ offset) from the label,
//
//	Σ u·½·r² / Σ u + L1·Σ |s·w| + ½·L2·Σ (s·w)²
//
// where s is the standard deviation of the feature, or 1 with NoStandardize, so that by
// default a penalty does not depend on the units of features. The intercept c is not
// penalised, and coefficients are those of the features as they are in any case. With W the
// total weight, scikit-learn's Ridge(alpha) has L2 = alpha/W, its Lasso(alpha) L1 = alpha,
// and its ElasticNet(alpha, l1_ratio) L1 = alpha·l1_ratio and L2 = alpha·(1−l1_ratio), all
// three with NoStandardize.
//
// # How
//
// Up to 256 features in dense columns one Newton step solves the normal equations, which
// are summed over centred and scaled features, shard by shard and up the tree of shards,
// so that the model has the same bits at any parallelism. L-BFGS takes over beyond that,
// and OWL-QN where there is an L1 penalty; package optim has the references.
//
// Columns that are constant, or that others determine, are no error: the table of standard
// errors says which they are, and where all are equally good solutions that is taken which
// changes about the least: twins have the same coefficient, within a thousandth or so. With
// more features than rows it is the same. What coefficients share is not theirs alone: they
// have no standard errors then.
//
// The table has standard errors, t statistics and p values by Student's distribution. It is
// made for squares without a penalty, and needs more rows than coefficients.
package linear
