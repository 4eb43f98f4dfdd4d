// Package simulate prices collective programs on networks given by numbers.
package simulate
