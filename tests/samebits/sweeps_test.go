package main_test

import (
	"os"
	"testing"

	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/tests/internal/programs"
	"github.com/superstep-ml/superstep/tests/internal/sweep"
)

// sweepsOf returns the settings of a workload.
func sweepsOf(t testing.TB, shards int, w sweep.Workload) []sweep.Sweep {
	switch {
	case testsize.Soak:
		return allSweeps(t, shards, w)
	case testsize.Race:
		return racedSweeps(t, shards, w)
	}
	return normalSweeps(t, shards, w)
}

// interrupted returns copies of s that forget objects between supersteps, interrupt queues, or
// are killed and continue from checkpoints, as far as this has an effect on the workload and must
// not change its results.
func interrupted(s sweep.Sweep, w sweep.Workload) []sweep.Sweep {
	if w.Queues == 0 {
		return nil
	}
	forgetting, cut, killed := s, s, s
	forgetting.Forget, cut.Cut = true, true
	killed.KillAfter = []int{2}
	if w.Size != sweep.Large {
		killed.KillAfter = []int{1, 6}
	}
	if w.DependsOnParallelism {
		return []sweep.Sweep{forgetting, killed}
	}
	killed.Parallelism = upTo(s.Shards, 3, 1, 8)
	return []sweep.Sweep{forgetting, cut, killed}
}

// normalSweeps returns sweeps that cover every value of every setting, and the pairs of values
// that are known to reveal faults: small batches with one processor, many subtasks with delays,
// and other builds with several subtasks. With 8 shards, some sweeps also make queues forget
// objects, or interrupt them. With 128 shards there are fewer settings, because all deliberate
// faults show with 8 shards. Other builds run only with 128 shards, because the effect of a build
// does not depend on the number of shards.
func normalSweeps(t testing.TB, shards int, w sweep.Workload) []sweep.Sweep {
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
	switch {
	case shards == 128 && w.Size != sweep.Small:
		all = []sweep.Sweep{
			at(exe[0], []int{1, 16}, []int{1024}, []int{2}, 1),
			at(exe[0], []int{5}, []int{7}, []int{1}, 1),
		}
	case shards == 128:
		all = []sweep.Sweep{
			at(exe[0], []int{1, 3, 16}, []int{1024}, []int{2}, 1),
			at(exe[0], []int{3}, []int{1}, []int{1}, 1),
			at(exe[0], []int{1, 8}, []int{7}, []int{2}, 2),
		}
		otherP = []int{16}
	case w.Size == sweep.Large:
		all = []sweep.Sweep{
			at(exe[0], []int{1, 3, 8, 16}, []int{1024}, []int{2}, 1),
			at(exe[0], []int{3}, []int{7}, []int{1}, 1),
			at(exe[0], []int{5}, []int{1024}, []int{2}, 2),
		}
	case w.Size == sweep.Medium:
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
		all = append(all, interrupted(at(exe[0], []int{2}, []int{1024}, []int{2}, 1), w)...)
	}
	for _, e := range others {
		all = append(all, at(e, otherP, []int{1024}, []int{2}, 1))
	}
	return all
}

// racedSweeps returns a sweep of a few settings with enough subtasks for data races. The race
// detector of the test binary finds no races in other processes. So samebits itself is built
// with the race detector, which makes a program with a race fail. The results are compared with
// those of the plain build.
func racedSweeps(t testing.TB, shards int, w sweep.Workload) []sweep.Sweep {
	plain := sweep.Sweep{
		Build: "plain", Path: programs.Build(t, "./tests/samebits"),
		Shards: shards, Parallelism: []int{3}, BatchRows: []int{1024}, Procs: []int{2}, Rounds: 1,
	}
	if w.Size == sweep.Small {
		plain.Parallelism = []int{1, 3}
	}
	raced := plain
	raced.Build, raced.Path = "with the race detector", programs.Build(t, "./tests/samebits", "GOFLAGS="+os.Getenv("GOFLAGS")+" -race")
	if w.Size != sweep.Large {
		raced.BatchRows = []int{7}
	}
	return []sweep.Sweep{plain, raced}
}

// allSweeps returns sweeps over the full product of the settings, and sweeps with delays, with
// forgotten objects and with interrupted queues.
func allSweeps(t testing.TB, shards int, w sweep.Workload) []sweep.Sweep {
	rounds := 2
	if w.Size == sweep.Small {
		rounds = 10
	}
	var all []sweep.Sweep
	for _, e := range executables(t) {
		e.Shards, e.Parallelism = shards, upTo(shards, 1, 2, 3, 5, 8, 16)
		e.BatchRows, e.Procs, e.Rounds = []int{1024, 7, 1}, []int{2, 1}, 1
		delayed := e
		delayed.BatchRows, delayed.Procs, delayed.Rounds = []int{1024}, []int{2}, rounds
		fewer := e
		fewer.Parallelism, fewer.BatchRows, fewer.Procs = upTo(shards, 1, 3, 8), []int{1024}, []int{2}
		all = append(append(all, e, delayed), interrupted(fewer, w)...)
	}
	return all
}
