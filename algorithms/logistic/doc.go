// Package logistic trains logistic regressions, binary and multinomial.
package logistic
