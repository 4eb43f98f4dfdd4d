package main

import (
	op "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The offsets in bytes of the fields of Thresholds of package kernel.
const (
	thresholdG      = 8 * iota // gradients of the bins so far
	thresholdH                 // hessians of the bins so far
	thresholdAllG              // gradients of all rows
	thresholdAllH              // hessians of all rows
	thresholdUnitG             // value of 1 in the sums of gradients
	thresholdUnitH             // value of 1 in the sums of hessians
	thresholdLambda            // addend to hessians in the divisor of a score
	thresholdLeast             // least sum of hessians of a child
	thresholdScore             // best score so far
)

// Predicates of comparisons that do not signal. notLess also holds if an operand is NaN.
const (
	notLess = 0x15
	greater = 0x1e
)

// thresholds writes the search for the best threshold.
func thresholds() {
	constants = map[uint64]op.Mem{}
	scanThresholds()
}

// scanThresholds writes the loop that scores eight consecutive thresholds at a time; thresholds
// are lanes. It computes the prefix sums of the bins over the lanes, which are exact in any
// order because they are integers.
func scanThresholds() {
	function("scanThresholds", "scores the thresholds behind each of n bins, a multiple of eight, and returns whether one is better\n"+
		"than before: then scores and places have the best of every eighth one, and its number from 0 on, or\n"+
		"that before and -1. t is the first field of Thresholds.",
		"func(t *int64, sums *int64, n int, scores *float64, places *int64) bool")
	t, sums, n := argument("t"), argument("sums"), argument("n")
	broadcast := func(offset int) reg.VecVirtual {
		v := a.ZMM()
		a.VBROADCASTSD(at(t, offset), v)
		return v
	}
	g, h := broadcast(thresholdG), broadcast(thresholdH)
	allG, allH := broadcast(thresholdAllG), broadcast(thresholdAllH)
	unitG, unitH := broadcast(thresholdUnitG), broadcast(thresholdUnitH)
	lambda, least, best := broadcast(thresholdLambda), broadcast(thresholdLeast), broadcast(thresholdScore)
	zeros, place, number, eight := a.ZMM(), a.ZMM(), a.ZMM(), a.ZMM()
	a.VPXORQ(zeros, zeros, zeros)
	a.VPBROADCASTQ(bitsOf(^uint64(0)), place)
	a.VMOVDQU64(sequence("thresholdNumbers", 8), number)
	a.VPBROADCASTQ(bitsOf(8), eight)
	evens, odds, last := a.ZMM(), a.ZMM(), a.ZMM()
	a.VMOVDQU64(lanesOf("thresholdEvens", 0, 2, 4, 6, 8, 10, 12, 14), evens)
	a.VMOVDQU64(lanesOf("thresholdOdds", 1, 3, 5, 7, 9, 11, 13, 15), odds)
	a.VPBROADCASTQ(bitsOf(7), last)
	found := a.GP64()
	a.XORQ(found, found)
	while(n, 8, func() {
		// ups returns the prefix sums of the gradients or the hessians of eight bins. Each
		// includes so, the sum of all bins before these. Then ups sets so to the last prefix
		// sum.
		ups := func(which, so reg.VecVirtual) reg.VecVirtual {
			v, shifted := a.ZMM(), a.ZMM()
			a.VMOVDQU64(at(sums, 0), v)
			a.VPERMT2Q(at(sums, 64), which, v)
			for _, by := range []uint64{1, 2, 4} {
				a.VALIGNQ(op.Imm(8-by), zeros, v, shifted)
				a.VPADDQ(shifted, v, v)
			}
			a.VPADDQ(so, v, v)
			a.VPERMQ(v, last, so)
			return v
		}
		leftG, leftH := ups(evens, g), ups(odds, h)
		rightG, rightH := a.ZMM(), a.ZMM()
		a.VPSUBQ(leftG, allG, rightG)
		a.VPSUBQ(leftH, allH, rightH)
		// side returns the part of the score for one side of the thresholds. It removes from
		// valid the thresholds for which this side is not eligible as a child.
		var valid reg.Register
		side := func(sumG, sumH reg.VecVirtual) reg.VecVirtual {
			any, next := a.ZMM(), a.K()
			a.VPORQ(sumG, sumH, any)
			if valid == nil {
				a.VPTESTMQ(any, any, next)
			} else {
				a.VPTESTMQ(any, any, valid, next)
			}
			hessian, gradient, enough, positive := a.ZMM(), a.ZMM(), a.K(), a.K()
			a.VCVTQQ2PD(sumH, hessian)
			a.VMULPD(unitH, hessian, hessian)
			a.VCMPPD(op.Imm(notLess), least, hessian, next, enough)
			a.VADDPD(lambda, hessian, hessian)
			a.VCMPPD(op.Imm(greater), zeros, hessian, enough, positive)
			a.VCVTQQ2PD(sumG, gradient)
			a.VMULPD(unitG, gradient, gradient)
			a.VMULPD(gradient, gradient, gradient)
			a.VDIVPD(hessian, gradient, gradient)
			valid = positive
			return gradient
		}
		score, right := side(leftG, leftH), side(rightG, rightH)
		a.VADDPD(right, score, score)
		better, bits := a.K(), a.GP64()
		a.VCMPPD(op.Imm(greater), best, score, valid, better)
		a.VMOVAPD(score, better, best)
		a.VMOVDQA64(number, better, place)
		a.KMOVW(better, bits.As32())
		a.ORQ(bits, found)
		a.VPADDQ(eight, number, number)
		a.ADDQ(op.I32(128), sums)
	})
	a.VMOVQ(g.AsX(), at(t, thresholdG))
	a.VMOVQ(h.AsX(), at(t, thresholdH))
	a.VMOVUPD(best, at(argument("scores"), 0))
	a.VMOVDQU64(place, at(argument("places"), 0))
	a.TESTQ(found, found)
	some := a.GP8()
	a.SETNE(some)
	a.Store(some, a.ReturnIndex(0))
	done()
}

// lanesOf returns the memory of a constant that has the given integers as lanes.
func lanesOf(name string, lanes ...uint64) op.Mem {
	m := a.StaticGlobal(name)
	a.DataAttributes(rodata)
	for _, v := range lanes {
		a.AppendDatum(op.U64(v))
	}
	return m
}
