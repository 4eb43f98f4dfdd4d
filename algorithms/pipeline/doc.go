// Package pipeline chains preparations and an estimator, to be trained, kept and applied as one.
package pipeline
