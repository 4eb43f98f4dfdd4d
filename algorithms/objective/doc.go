// Package objective is the losses of linear models, and how they are evaluated on
// rows: squared, logistic, softmax, hinge, squared hinge, epsilon-insensitive, Huber,
// Poisson and other exponential families, perceptron, and accelerated failure time.
// A [Linear] of a loss and checked rows is an objective for package optim.
package objective
