//go:build !race

package check_test

// raced says whether the race detector runs. It finds little here, as the checker is a pure
// function of programs.
const raced = false
