// Package linear trains linear regressions: least squares, ridge, lasso and elastic net.
package linear
