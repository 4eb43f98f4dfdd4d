package kernel

import "unsafe"

// AddScaledTo sets dst[i] = x[i] + a*y[i]. If x has the margins of rows, and y has their
// derivatives along a direction, dst gets the margins after a step of length a along this
// direction. dst may be x or y.
func AddScaledTo(dst, x []float64, a float64, y []float64) { addScaledTo(active, dst, x, a, y) }

func addScaledTo(k dispatch, dst, x []float64, a float64, y []float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for k.avx2 && len(dst) >= 8 {
		n := min(len(dst), callSize)
		addScaledTo64(a, unsafe.SliceData(x), unsafe.SliceData(y), unsafe.SliceData(dst), n)
		dst, x, y = dst[n:], x[n:], y[n:]
	}
	for i := range dst {
		dst[i] = x[i] + float64(a*y[i])
	}
}

// SignByClass sets dst[i] = (1 - 2*class[i])*x[i]: x[i] for rows of class 0, and -x[i] for rows
// of class 1. dst may be x or class.
func SignByClass(dst, class, x []float64) { signByClass(active, dst, class, x) }

func signByClass(k dispatch, dst, class, x []float64) {
	class, x = class[:len(dst)], x[:len(dst)]
	for k.avx2 && len(dst) >= 8 {
		n := min(len(dst), callSize)
		signByClass64(1, unsafe.SliceData(class), unsafe.SliceData(x), unsafe.SliceData(dst), n)
		dst, class, x = dst[n:], class[n:], x[n:]
	}
	for i := range dst {
		dst[i] = (1 - float64(2*class[i])) * x[i]
	}
}

// Drain sets dst[i] = a[i]*scale[i] and a[i] = 0, which moves sums out of a and resets them.
// The slices do not overlap.
func Drain(dst, a, scale []float64) { drain(active, dst, a, nil, scale, false) }

// DrainPair sets dst[i] = a[i]*scale[i] + b[i]*scale[i] and a[i] = b[i] = 0. The slices do not
// overlap.
func DrainPair(dst, a, b, scale []float64) { drain(active, dst, a, b[:len(dst)], scale, false) }

// DrainPairOnto sets dst[i] = dst[i] + (a[i]*scale[i] + b[i]*scale[i]) and a[i] = b[i] = 0: it
// is DrainPair followed by AddTo. The slices do not overlap.
func DrainPairOnto(dst, a, b, scale []float64) { drain(active, dst, a, b[:len(dst)], scale, true) }

func drain(k dispatch, dst, a, b, scale []float64, onto bool) {
	a, scale = a[:len(dst)], scale[:len(dst)]
	for k.avx2 && len(dst) >= 8 {
		n := min(len(dst), callSize)
		from, to, by := unsafe.SliceData(a), unsafe.SliceData(dst), unsafe.SliceData(scale)
		switch {
		case b == nil:
			drain64(by, from, to, n)
		case onto:
			addPair64(by, from, unsafe.SliceData(b), to, n)
		default:
			drainPair64(by, from, unsafe.SliceData(b), to, n)
		}
		if b != nil {
			b = b[n:]
		}
		dst, a, scale = dst[n:], a[n:], scale[n:]
	}
	for i, v := range a {
		v = float64(v * scale[i])
		if b != nil {
			v += float64(b[i] * scale[i])
			b[i] = 0
		}
		if onto {
			v = dst[i] + v
		}
		dst[i], a[i] = v, 0
	}
}
