// Package glm trains generalised linear models by iteratively reweighted least squares.
package glm
