//go:build soak

package tests

import (
	"flag"
	"testing"
)

// Random graphs are drawn many times more often than usual.
func init() {
	if err := flag.Set("rapid.checks", "5000"); err != nil {
		panic(err)
	}
}

// sweepsOf is the whole product of the settings, and rounds with delays.
func sweepsOf(t testing.TB, shards int, size size) []sweep {
	rounds := 2
	if size == small {
		rounds = 10
	}
	var all []sweep
	for _, e := range executables(t) {
		e.shards, e.parallelism = shards, upTo(shards, 1, 2, 3, 5, 8, 16)
		e.batchRows, e.procs, e.rounds = []int{1024, 7, 1}, []int{2, 1}, 1
		delayed := e
		delayed.batchRows, delayed.procs, delayed.rounds = []int{1024}, []int{2}, rounds
		all = append(all, e, delayed)
	}
	return all
}
