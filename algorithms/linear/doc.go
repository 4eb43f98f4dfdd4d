// Package linear trains linear regressions: least squares, ridge, lasso, elastic net, and Huber
// regression for labels with outliers.
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
// With row weights u and residuals r, the differences of w·x + c (+ offset) from the label,
//
//	Σ u·½·r² / Σ u + L1·Σ |s·w| + ½·L2·Σ (s·w)²
//
// where s is the standard deviation of the feature, or 1 with NoStandardize, so that by default
// a penalty does not depend on the units of features. The intercept c is not penalised.
// Coefficients are always for unscaled features. With NoStandardize and the total weight W,
// scikit-learn's Ridge(alpha) is L2 = alpha/W, its Lasso(alpha) is L1 = alpha, and its
// ElasticNet(alpha, l1_ratio) is L1 = alpha·l1_ratio and L2 = alpha·(1−l1_ratio).
//
// # How
//
// Up to 256 features in dense columns, one Newton step solves the normal equations. These are
// summed over centred and scaled features, shard by shard and up the tree of shards, so that
// the model has the same bits at any parallelism. L-BFGS is used beyond that, and OWL-QN with
// an L1 penalty; package optim has the references.
//
// Columns that are constant or determined by others are no error: the table of standard errors
// names them. Of many equally good solutions, training finds approximately the one nearest to
// the start: equal columns have the same coefficient, within a thousandth or so. The same holds
// with more features than rows. Coefficients that the rows do not determine separately have no
// standard errors.
//
// The table has standard errors, t statistics and p values by Student's distribution. It is
// made for least squares without a penalty, and needs more rows than coefficients.
package linear
