//go:build !race

package builtin_test

// race is false: see the other file.
const race = false
