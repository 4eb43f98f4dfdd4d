//go:build !soak

package core

// rounds is how many hundred random lives TestAnything lives.
const rounds = 4
