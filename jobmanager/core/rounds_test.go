//go:build !soak

package core

// rounds is how many hundred random histories TestAnything plays.
const rounds = 4
