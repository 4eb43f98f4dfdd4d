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
