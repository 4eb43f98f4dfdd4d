package kernel

import "math"

// The elementary functions of float32 are computed in float64 and rounded once, at the end. So
// a polynomial with a relative error of 2^-40 leaves an error hardly above the half ulp of
// rounding. No tables are needed, and only the ends of the range are special arguments. Their
// errors were measured at all 2^32 arguments, against the functions of float64; see
// TestSingles.
//
// The polynomials interpolate the exact values at the Chebyshev nodes of their interval, which
// is nearly the best approximation (Trefethen, Approximation Theory and Approximation Practice,
// 2013, chapters 4 and 16).

const (
	rLn2 = 0x1.71547652b82fep+0 // 1/ln2
	ln2  = 0x1.62e42fefa39efp-1

	// For larger arguments, results of exp are infinite or 0 in float32, but normal numbers in
	// float64.
	singleExpMost = 200

	// (e^r - 1 - r)/r² for |r| ≤ 0.3466, off by less than 2^-41.
	exp2nd = 0x1.fffffffffe064p-2
	exp3rd = 0x1.5555555554f96p-3
	exp4th = 0x1.55555565c746ep-5
	exp5th = 0x1.111111170b889p-7
	exp6th = 0x1.6c166be0ac9c4p-10
	exp7th = 0x1.a019c36d4499dp-13
	exp8th = 0x1.a136bb8abfb74p-16
	exp9th = 0x1.72ad42f9bb93fp-19

	// (atanh(s)/s - 1)/s² in powers of s², for |s| ≤ 0.1716, off by less than 2^-45.
	atanh1st = 0x1.55555555553b7p-2
	atanh2nd = 0x1.9999999b878d7p-3
	atanh3rd = 0x1.249246299fc8ep-3
	atanh4th = 0x1.c71fcdfe2f300p-4
	atanh5th = 0x1.7382a9fa2e7aep-4
	atanh6th = 0x1.546d249f36cb2p-4
)

// singleExp returns p and z with e^x = (1+p)·z, where z is a power of two, for |x| ≤ 200. If z
// is 1, the relative error of p is below 2^-41.
func singleExp(x float64) (p, z float64) {
	shifted := float64(x*rLn2) + roundShift
	n := shifted - roundShift
	r := x - float64(n*ln2)
	w := float64(r * r)
	low := (exp2nd + float64(r*exp3rd)) + float64(w*(exp4th+float64(r*exp5th)))
	top := (exp6th + float64(r*exp7th)) + float64(w*(exp8th+float64(r*exp9th)))
	p = r + float64(w*(low+float64(float64(w*w)*top)))
	return p, math.Float64frombits(math.Float64bits(shifted)<<52 + 1023<<52)
}

// singleLog returns the logarithm of m·2^k, for m as returned by split.
func singleLog(m, k float64) float64 {
	f := m - 1
	s := f / (2 + f)
	z := float64(s * s)
	w := float64(z * z)
	q := (atanh1st + float64(z*atanh2nd)) + float64(w*((atanh3rd+float64(z*atanh4th))+float64(w*(atanh5th+float64(z*atanh6th)))))
	s += s
	return float64(k*ln2) + (s + float64(s*float64(z*q)))
}

// bounded returns x, or the nearer of ±most beyond them.
func bounded(x, most float64) float64 { return max(min(x, most), -most) }

var singleNaN = float32(math.NaN())

// Exp32 is [Exp] of float32. The error is below 0.50001 ulp.
func Exp32(x float32) float32 {
	if x != x {
		return singleNaN
	}
	p, z := singleExp(bounded(float64(x), singleExpMost))
	return float32(z + float64(z*p))
}

// Log32 is [Log] of float32. The error is below 0.50001 ulp.
func Log32(x float32) float32 {
	if !(x > 0 && x <= math.MaxFloat32) {
		return float32(logSpecial(float64(x)))
	}
	m, k := split(float64(x))
	return float32(singleLog(m, float64(k)))
}

// Log1p32 is [Log1p] of float32. The error is below 0.50001 ulp.
func Log1p32(x float32) float32 {
	v := float64(x)
	switch {
	case x == 0:
		return x
	case !(x > -1 && x <= math.MaxFloat32):
		return float32(logSpecial(1 + v))
	}
	// The rounding error of 1+v matters if v is small, and is negligible if v is large.
	u := 1 + v
	var lost float64
	if v < 1 {
		lost = v - (u - 1)
	}
	m, k := split(u)
	return float32(singleLog(m, float64(k)) + lost)
}

// Sigmoid32 is [Sigmoid] of float32. The error is below 0.50001 ulp.
func Sigmoid32(x float32) float32 {
	if x != x {
		return singleNaN
	}
	p, z := singleExp(-bounded(float64(x), singleExpMost))
	return float32(1 / (1 + (z + float64(z*p))))
}

// Tanh32 is [Tanh] of float32. The error is below 0.50001 ulp.
func Tanh32(x float32) float32 {
	if x != x {
		return singleNaN
	}
	v := float64(x)
	p, z := singleExp(2 * min(math.Abs(v), 20))
	t := float64(z*p) + (z - 1) // e^2|x| - 1
	return float32(math.Copysign(t/(t+2), v))
}

// Pow32 is [Pow] of float32. The error is below 0.5001 ulp.
func Pow32(x, y float32) float32 {
	if !(x > 0 && x <= math.MaxFloat32 && -math.MaxFloat32 <= y && y <= math.MaxFloat32) {
		return float32(Pow(float64(x), float64(y)))
	}
	m, k := split(float64(x))
	v := float64(float64(y) * singleLog(m, float64(k)))
	p, z := singleExp(bounded(v, singleExpMost))
	return float32(z + float64(z*p))
}
