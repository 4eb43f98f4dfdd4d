// Package svm trains linear support vector machines, for classes and for numbers.
package svm
