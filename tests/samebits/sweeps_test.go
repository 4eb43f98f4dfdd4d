//go:build !soak && !race

package main_test

import (
	"testing"

	"github.com/superstep-ml/superstep/tests/internal/sweep"
)

// soak says that tests run at their full counts.
const soak = false

// sweepsOf covers every value of every setting, and the pairs that are known to hide faults:
// small batches with one processor, many subtasks with delays, other builds with several
// subtasks. With 8 shards, queues also forget, and are interrupted. Other builds run with 128
// shards only: the effect of a build does not depend on the number of shards.
func sweepsOf(t testing.TB, shards int, size sweep.Size) []sweep.Sweep {
	exe := executables(t)
	at := func(e sweep.Sweep, parallelism, batchRows, procs []int, rounds int) sweep.Sweep {
		e.Shards, e.Parallelism, e.BatchRows, e.Procs, e.Rounds = shards, upTo(shards, parallelism...), batchRows, procs, rounds
		return e
	}
	var all []sweep.Sweep
	others, otherP := exe[1:], []int{3}
	if shards != 128 {
		others = nil
	}
	switch size {
	case sweep.Large:
		all = []sweep.Sweep{
			at(exe[0], []int{1, 3, 8, 16}, []int{1024}, []int{2}, 1),
			at(exe[0], []int{3}, []int{7}, []int{1}, 1),
			at(exe[0], []int{5}, []int{1024}, []int{2}, 2),
		}
	case sweep.Medium:
		all = []sweep.Sweep{
			at(exe[0], []int{1, 2, 8}, []int{1024}, []int{2}, 1),
			at(exe[0], []int{3}, []int{7}, []int{1}, 1),
			at(exe[0], []int{5}, []int{1024}, []int{2}, 2),
		}
	default:
		all = []sweep.Sweep{
			at(exe[0], []int{1, 2, 3, 5, 8, 16}, []int{1024}, []int{2}, 1),
			at(exe[0], []int{1, 3, 8}, []int{7}, []int{2}, 1),
			at(exe[0], []int{2, 5}, []int{1}, []int{1}, 1),
			at(exe[0], []int{3, 8}, []int{7}, []int{2}, 3),
		}
		otherP = []int{1, 16}
	}
	if shards == 8 {
		forgetting := at(exe[0], []int{2}, []int{1024}, []int{2}, 1)
		forgetting.Forget = true
		cut := at(exe[0], []int{2}, []int{1024}, []int{2}, 1)
		cut.Cut = true
		all = append(all, forgetting, cut)
	}
	for _, e := range others {
		all = append(all, at(e, otherP, []int{1024}, []int{2}, 1))
	}
	return all
}
