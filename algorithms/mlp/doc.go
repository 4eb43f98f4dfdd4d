// Package mlp trains multilayer perceptrons.
package mlp
