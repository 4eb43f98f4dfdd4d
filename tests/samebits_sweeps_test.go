//go:build !soak && !race

package tests

import "testing"

// sweepsOf covers every value of every setting, and those pairs that have been
// known to hide faults: small batches with one processor, many subtasks with
// delays, other builds with several subtasks.
func sweepsOf(t testing.TB, shards int, size size) []sweep {
	exe := executables(t)
	at := func(e sweep, parallelism, batchRows, procs []int, rounds int) sweep {
		e.shards, e.parallelism, e.batchRows, e.procs, e.rounds = shards, upTo(shards, parallelism...), batchRows, procs, rounds
		return e
	}
	var all []sweep
	switch size {
	case large:
		all = []sweep{
			at(exe[0], []int{1, 2, 3, 5, 8, 16}, []int{1024}, []int{2}, 1),
			at(exe[0], []int{3}, []int{7, 1}, []int{1}, 1),
			at(exe[0], []int{5}, []int{1024}, []int{2}, 2),
		}
		for _, e := range exe[1:] {
			all = append(all, at(e, []int{8}, []int{1024}, []int{2}, 1))
		}
	case medium:
		all = []sweep{
			at(exe[0], []int{1, 2, 3, 8}, []int{1024}, []int{2}, 1),
			at(exe[0], []int{3}, []int{7}, []int{1}, 1),
			at(exe[0], []int{5}, []int{1024}, []int{2}, 2),
		}
		for i, e := range exe[1:] {
			all = append(all, at(e, []int{1 + i%3}, []int{1024}, []int{2}, 1))
		}
	default:
		all = []sweep{
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
