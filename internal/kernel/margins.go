package kernel

import "unsafe"

// MovedTo sets dst[i] = x[i] + a*y[i]: the margins of rows at a step along a direction. dst
// may be x or y.
func MovedTo(dst, x []float64, a float64, y []float64) { movedTo(active, dst, x, a, y) }

func movedTo(k dispatch, dst, x []float64, a float64, y []float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	for k.avx2 && len(dst) >= 8 {
		n := min(len(dst), callSize)
		movedTo64(a, unsafe.SliceData(x), unsafe.SliceData(y), unsafe.SliceData(dst), n)
		dst, x, y = dst[n:], x[n:], y[n:]
	}
	for i := range dst {
		dst[i] = x[i] + float64(a*y[i])
	}
}

// OpposedTo sets dst[i] = (1 - 2*class[i])*x[i]: what it is for rows of class 0, and with the
// other sign for those of class 1. dst may be x or class.
func OpposedTo(dst, class, x []float64) { opposedTo(active, dst, class, x) }

func opposedTo(k dispatch, dst, class, x []float64) {
	class, x = class[:len(dst)], x[:len(dst)]
	for k.avx2 && len(dst) >= 8 {
		n := min(len(dst), callSize)
		opposedTo64(1, unsafe.SliceData(class), unsafe.SliceData(x), unsafe.SliceData(dst), n)
		dst, class, x = dst[n:], class[n:], x[n:]
	}
	for i := range dst {
		dst[i] = (1 - float64(2*class[i])) * x[i]
	}
}

// DrainTo sets dst[i] = src[i]*scale[i] and src[i] = 0: what sums came to goes on, and there
// are sums to be made anew. They do not overlap.
func DrainTo(dst, src, scale []float64) { drain(active, false, dst, src, scale) }

// DrainOnto sets dst[i] = dst[i] + src[i]*scale[i] and src[i] = 0. They do not overlap.
func DrainOnto(dst, src, scale []float64) { drain(active, true, dst, src, scale) }

func drain(k dispatch, onto bool, dst, src, scale []float64) {
	src, scale = src[:len(dst)], scale[:len(dst)]
	for k.avx2 && len(dst) >= 8 {
		n := min(len(dst), callSize)
		if onto {
			drainOnto64(unsafe.SliceData(scale), unsafe.SliceData(src), unsafe.SliceData(dst), n)
		} else {
			drainTo64(unsafe.SliceData(scale), unsafe.SliceData(src), unsafe.SliceData(dst), n)
		}
		dst, src, scale = dst[n:], src[n:], scale[n:]
	}
	for i, v := range src {
		if v = float64(v * scale[i]); onto {
			v = dst[i] + v
		}
		dst[i], src[i] = v, 0
	}
}
