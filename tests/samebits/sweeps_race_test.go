//go:build race && !soak

package main_test

import (
	"testing"

	"github.com/superstep-ml/superstep/tests/internal/programs"
	"github.com/superstep-ml/superstep/tests/internal/sweep"
)

// With the race detector, only those tests of this package run in which it can find something.
// Tests that check sources or start programs are built without it (see the build constraints):
// it does not see into other processes, and the same checks have passed without it. Instead
// samebits is built with the detector, which makes a program with a race fail.

// soak says that tests run at their full counts.
const soak = false

// sweepsOf returns a few settings with enough subtasks for races.
func sweepsOf(t testing.TB, shards int, size sweep.Size) []sweep.Sweep {
	s := sweep.Sweep{
		Build: "with the race detector", Path: programs.Build(t, "./tests/samebits", "GOFLAGS=-race"),
		Shards: shards, Parallelism: []int{3}, BatchRows: []int{1024}, Procs: []int{2}, Rounds: 1,
	}
	if shards == 8 && size != sweep.Large {
		s.Parallelism, s.BatchRows = []int{1, 3}, []int{7}
	}
	return []sweep.Sweep{s}
}
