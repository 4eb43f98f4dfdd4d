// Package membership knows who is in a group of ranks, where they are, whether they
// are alive, and, once one is not, tells everybody the first cause.
package membership
