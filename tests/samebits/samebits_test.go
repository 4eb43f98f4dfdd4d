package main_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"

	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/tests/internal/programs"
	"github.com/superstep-ml/superstep/tests/internal/sweep"
)

// The same-bits suite runs the program samebits at many settings, in different builds and with
// different processor features. Every byte of its results must be the same as with one subtask.
// The tests in faults_test.go show with deliberate faults that the suite can fail.

// executables returns the builds and environments to compare. The first is the default build in
// the default environment.
func executables(t testing.TB) []sweep.Sweep {
	t.Helper()
	const pkg = "./tests/samebits"
	plain := programs.Build(t, pkg)
	all := []sweep.Sweep{
		{Build: "plain", Path: plain},
		{Build: "without AVX2 and FMA", Path: plain, Environ: []string{"GODEBUG=cpu.avx2=off,cpu.fma=off"}},
		{Build: "without assembly", Path: plain, Environ: []string{"SUPERSTEP_DEBUG=kernel.asm=off"}},
		{Build: "with no assembly beyond AVX2", Path: plain, Environ: []string{"SUPERSTEP_DEBUG=kernel.asm=avx2"}},
	}
	// A build for GOAMD64=v3 uses fused multiply-add instructions where the source allows it.
	// It runs only on processors that have these instructions, and all packages must be
	// compiled for it. Without soak, TestNoFusedMultiplyAdd already requires that no package
	// has such an instruction.
	if testsize.Soak && fuses() {
		all = append(all, sweep.Sweep{Build: "GOAMD64=v3", Path: programs.Build(t, pkg, "GOAMD64=v3"), Environ: []string{"GOAMD64=v3"}})
	}
	return all
}

// fuses reports whether programs built for GOAMD64=v3 run on this machine.
func fuses() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasBMI2 }

// upTo returns the given parallelisms that do not exceed the number of shards.
func upTo(shards int, parallelism ...int) []int {
	var kept []int
	for _, p := range parallelism {
		if p <= shards {
			kept = append(kept, p)
		}
	}
	return kept
}

// shardCounts returns the numbers of shards of the suite. Data races do not depend on them, so
// under the race detector there is only one.
func shardCounts() []int {
	if testsize.Race {
		return []int{8}
	}
	return []int{8, 128}
}

func TestSameBits(t *testing.T) {
	for _, w := range sweep.Workloads(t, programs.Build(t, "./tests/samebits")) {
		for _, shards := range shardCounts() {
			t.Run(fmt.Sprintf("%s/S=%d", w.Name, shards), func(t *testing.T) {
				t.Parallel()
				out := t.TempDir()
				var digests []sweep.Digest
				for _, s := range sweepsOf(t, shards, w) { // the first sweep begins with the reference
					digests = append(digests, s.Run(t, w.Name, out)...)
				}
				require.Empty(t, sweep.Differences(digests, w.DependsOnParallelism, out))
			})
		}
	}
}
