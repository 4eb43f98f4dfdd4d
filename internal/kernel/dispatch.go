package kernel

import (
	"os"
	"strings"

	"golang.org/x/sys/cpu"
)

//go:generate go run -C avo . -dir ..

// dispatch says which form of the loops is used: the assembly for a processor, or pure Go. All
// forms give the same bits.
type dispatch struct {
	avx2   bool
	avx512 bool // in addition to avx2, for the loops that are bound by arithmetic
}

// active is the form that the exported functions use. It is chosen when the package is
// initialised.
var active = choose(available(), os.Getenv("SUPERSTEP_DEBUG"))

// available returns the form for this processor, without extensions that GODEBUG turns off.
func available() dispatch {
	x := &cpu.X86
	return formOf(features{avx2: x.HasAVX2, avx512f: x.HasAVX512F, avx512dq: x.HasAVX512DQ, avx512vl: x.HasAVX512VL})
}

// features are the processor extensions that the assembly needs.
type features struct {
	avx2, avx512f bool
	avx512dq      bool // instructions on pairs of doubles; masks as vectors of integers
	avx512vl      bool // the instructions of the other two extensions on registers of 128 and 256 bits
}

// formOf returns the widest form whose instructions the processor has.
func formOf(has features) dispatch {
	return dispatch{avx2: has.avx2, avx512: has.avx2 && has.avx512f && has.avx512dq && has.avx512vl}
}

// choose returns the form to use. settings has name=value pairs separated by commas. The
// setting of this package is kernel.asm; its value is off, or avx2 for at most AVX2. Under the
// race detector, which does not see memory accesses of assembly, pure Go is used.
func choose(form dispatch, settings string) dispatch {
	for setting := range strings.SplitSeq(settings, ",") {
		switch strings.TrimSpace(setting) {
		case "kernel.asm=off":
			return dispatch{}
		case "kernel.asm=avx2":
			form.avx512 = false
		}
	}
	if raceDetector {
		return dispatch{}
	}
	return form
}

// callSize bounds the number of elements that one call of assembly reads. The scheduler cannot
// preempt the call, and the garbage collector waits for its end.
const callSize = 1 << 16

// rowsPerCall returns the number of rows of d features for one call of assembly. It is a
// positive multiple of the number of rows that one iteration of the loops takes.
func rowsPerCall[T Float](d int) int {
	pass := 16
	if !is64[T]() {
		pass = 24
	}
	return max(callSize/max(d, 1)/pass, 1) * pass
}
