//go:build soak

package main_test

import (
	"testing"

	"github.com/superstep-ml/superstep/tests/internal/sweep"
)

// soak says that tests run at their full counts.
const soak = true

// sweepsOf returns the full product of the settings, and rounds with delays.
func sweepsOf(t testing.TB, shards int, size sweep.Size) []sweep.Sweep {
	rounds := 2
	if size == sweep.Small {
		rounds = 10
	}
	var all []sweep.Sweep
	for _, e := range executables(t) {
		e.Shards, e.Parallelism = shards, upTo(shards, 1, 2, 3, 5, 8, 16)
		e.BatchRows, e.Procs, e.Rounds = []int{1024, 7, 1}, []int{2, 1}, 1
		delayed := e
		delayed.BatchRows, delayed.Procs, delayed.Rounds = []int{1024}, []int{2}, rounds
		forgetting := e
		forgetting.Parallelism, forgetting.BatchRows, forgetting.Procs, forgetting.Forget = upTo(shards, 1, 3, 8), []int{1024}, []int{2}, true
		cut := forgetting
		cut.Forget, cut.Cut = false, true
		all = append(all, e, delayed, forgetting, cut)
	}
	return all
}
