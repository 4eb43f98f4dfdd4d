// Package linear trains linear regressions: least squares, ridge, lasso, elastic net, and Huber
// regression for labels with outliers.
//
//	made := linear.Train(rows, linear.Params{LabelCol: "price"})                  // least squares
//	made := linear.Train(rows, linear.Ridge(0.1, linear.Params{LabelCol: "price"}))
//	engine.Collect(made, "model")
//	predicted := linear.Predict(rows, made, linear.PredictOptions{})
//	...
//	m, err := linear.ModelOf(result, "model")
//	y := m.Predict([]float64{70, 3})               // needs no engine; safe for concurrent use
//
// # Objective
//
// With row weights u and residuals r, which are w·x + c (+ offset) minus the label, training
// minimises
//
//	Σ u·½·r² / Σ u + L1·Σ |s·w| + ½·L2·Σ (s·w)²
//
// where s is the standard deviation of the feature, or 1 with NoStandardize. So by default the
// penalty does not depend on the units of features. The intercept c is not penalised.
// Coefficients are always for unscaled features. With NoStandardize, and with W the total
// weight, scikit-learn's Ridge(alpha) corresponds to L2 = alpha/W, Lasso(alpha) to L1 = alpha,
// and ElasticNet(alpha, l1_ratio) to L1 = alpha·l1_ratio and L2 = alpha·(1−l1_ratio).
//
// # Methods
//
// With at most 256 features in dense columns, one Newton step solves the normal equations. The
// matrix of the normal equations is summed over centred and scaled features, first within each
// shard and then over shards in the order of a tree, so that the model has the same bits at any
// parallelism. With more features training uses L-BFGS, and with an L1 penalty OWL-QN; package
// optim cites the papers.
//
// Columns that are constant, or linear combinations of other columns, are not an error. The
// table of standard errors names them. If many solutions are equally good, training finds
// approximately the solution nearest to the start: equal columns get the same coefficient, with
// a relative difference of about 1e-3 at most. The same holds if there are more features than
// rows. Coefficients that the rows do not determine separately have no standard errors.
//
// The table of standard errors also has t statistics, and p values by Student's distribution.
// It is computed for least squares without a penalty, and needs more rows than coefficients.
package linear
