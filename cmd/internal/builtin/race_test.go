//go:build race

package builtin_test

// race says that the race detector looks on, with which processes take ten times as long:
// then a part of the algorithms stands for all, which share the code that it looks at here.
const race = true
