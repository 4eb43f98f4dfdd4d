package main_test

import (
	"os"
	"testing"

	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/tests/internal/programs"
	"github.com/superstep-ml/superstep/tests/internal/sweep"
)

// sweepsOf returns the settings of a workload.
func sweepsOf(t testing.TB, shards int, size sweep.Size) []sweep.Sweep {
	switch {
	case testsize.Soak:
		return allSweeps(t, shards, size)
	case testsize.Race:
		return racedSweeps(t, shards, size)
	}
	return normalSweeps(t, shards, size)
}

// normalSweeps returns sweeps that cover every value of every setting, and the pairs of values
// that are known to reveal faults: small batches with one processor, many subtasks with delays,
// and other builds with several subtasks. With 8 shards, some sweeps also make queues forget
// objects, or interrupt them. Other builds run only with 128 shards, because the effect of a
// build does not depend on the number of shards.
func normalSweeps(t testing.TB, shards int, size sweep.Size) []sweep.Sweep {
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

// racedSweeps returns a sweep of a few settings with enough subtasks for data races. The race
// detector of the test binary finds no races in other processes. So samebits itself is built
// with the race detector, which makes a program with a race fail.
func racedSweeps(t testing.TB, shards int, size sweep.Size) []sweep.Sweep {
	s := sweep.Sweep{
		Build: "with the race detector", Path: programs.Build(t, "./tests/samebits", "GOFLAGS="+os.Getenv("GOFLAGS")+" -race"),
		Shards: shards, Parallelism: []int{3}, BatchRows: []int{1024}, Procs: []int{2}, Rounds: 1,
	}
	if shards == 8 && size != sweep.Large {
		s.Parallelism, s.BatchRows = []int{1, 3}, []int{7}
	}
	return []sweep.Sweep{s}
}

// allSweeps returns sweeps over the full product of the settings, and sweeps with delays, with
// forgotten objects and with interrupted queues.
func allSweeps(t testing.TB, shards int, size sweep.Size) []sweep.Sweep {
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
