//go:build !soak

package core

// rounds is the number of random histories of TestAnything, in hundreds.
const rounds = 4
