// Package selection compares settings: cross-validation and grid search, all folds in one job.
package selection
