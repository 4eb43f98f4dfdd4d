//go:build !race

package check_test

// raced reports whether the race detector runs. Then the tests check less, since the checker is
// a pure function of programs, in which the race detector finds little.
const raced = false
