// Package bins is how trees see training data: rows whose features are numbers of bins, a
// byte each, cut where the values of all rows say.
package bins
