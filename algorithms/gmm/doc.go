// Package gmm fits mixtures of Gaussian distributions by expectation maximisation.
package gmm
