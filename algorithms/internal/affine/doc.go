// Package affine is what the estimators of linear models share: coefficients on the scale of the features, predictions, summaries.
package affine
