package kernel

import (
	"os"
	"strings"

	"golang.org/x/sys/cpu"
)

//go:generate go run -C avo . -dir ..

// dispatch says which form of the loops runs: the assembly for a processor, or
// pure Go. Both give the same bits.
type dispatch struct {
	avx2 bool
}

// active is the form that the exported functions use; it is chosen once.
var active = choose(cpu.X86.HasAVX2, os.Getenv("SUPERSTEP_DEBUG"))

// choose returns the form for a processor. settings are name=value pairs
// separated by commas, of which kernel.asm=off is for this package. Under the
// race detector, which does not see into assembly, pure Go runs.
func choose(avx2 bool, settings string) dispatch {
	for setting := range strings.SplitSeq(settings, ",") {
		if strings.TrimSpace(setting) == "kernel.asm=off" {
			return dispatch{}
		}
	}
	return dispatch{avx2: avx2 && !raceDetector}
}

// Assembly names the assembly in use: "avx2", or "none" where pure Go runs.
// Results are the same bits with either.
//
// SUPERSTEP_DEBUG=kernel.asm=off in the environment turns assembly off when the
// process starts, as does GODEBUG=cpu.avx2=off.
func Assembly() string {
	if active.avx2 {
		return "avx2"
	}
	return "none"
}

// callSize bounds the elements that one call into assembly reads: the scheduler
// cannot interrupt it, and a collection of garbage waits for it.
const callSize = 1 << 16

// rowsPerCall returns the rows of d features that one call takes, a multiple of
// 64.
func rowsPerCall(d int) int { return max(callSize/max(d, 1)&^63, 64) }
