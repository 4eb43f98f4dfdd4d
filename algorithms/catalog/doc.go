// Package catalog lists every kind of model, so that any model file can be read.
package catalog
