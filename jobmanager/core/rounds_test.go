//go:build !soak

package core

// rounds is the number of runs of rapid.Check in TestAnything; each run tries a hundred random
// histories.
const rounds = 4
