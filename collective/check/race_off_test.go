//go:build !race

package check_test

// raced says that the race detector runs, for which there is little here: a checker is a
// function of programs.
const raced = false
