// Package evaluate measures predictions: binary, multiclass, regression, clustering and ranking.
package evaluate
