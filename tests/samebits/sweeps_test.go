//go:build !soak && !race

package main_test

import (
	"testing"

	"github.com/superstep-ml/superstep/tests/internal/sweep"
)

// sweepsOf covers every value of every setting, and those pairs that have been
// known to hide faults: small batches with one processor, many subtasks with
// delays, other builds with several subtasks.
func sweepsOf(t testing.TB, shards int, size sweep.Size) []sweep.Sweep {
	exe := executables(t)
	at := func(e sweep.Sweep, parallelism, batchRows, procs []int, rounds int) sweep.Sweep {
		e.Shards, e.Parallelism, e.BatchRows, e.Procs, e.Rounds = shards, upTo(shards, parallelism...), batchRows, procs, rounds
		return e
	}
	var all []sweep.Sweep
	switch size {
	case sweep.Large:
		all = []sweep.Sweep{
			at(exe[0], []int{1, 2, 3, 5, 8, 16}, []int{1024}, []int{2}, 1),
			at(exe[0], []int{3}, []int{7, 1}, []int{1}, 1),
			at(exe[0], []int{5}, []int{1024}, []int{2}, 2),
		}
		for _, e := range exe[1:] {
			all = append(all, at(e, []int{8}, []int{1024}, []int{2}, 1))
		}
	case sweep.Medium:
		all = []sweep.Sweep{
			at(exe[0], []int{1, 2, 3, 8}, []int{1024}, []int{2}, 1),
			at(exe[0], []int{3}, []int{7}, []int{1}, 1),
			at(exe[0], []int{5}, []int{1024}, []int{2}, 2),
		}
		for i, e := range exe[1:] {
			all = append(all, at(e, []int{1 + i%3}, []int{1024}, []int{2}, 1))
		}
	default:
		all = []sweep.Sweep{
			at(exe[0], []int{1, 2, 3, 5, 8, 16}, []int{1024, 7}, []int{2}, 1),
			at(exe[0], []int{2, 5}, []int{1}, []int{1}, 1),
			at(exe[0], []int{3, 8}, []int{7}, []int{2}, 3),
		}
		for _, e := range exe[1:] {
			all = append(all, at(e, []int{1, 16}, []int{1024}, []int{2}, 1))
		}
	}
	return all
}
