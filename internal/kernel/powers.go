package kernel

// PowByTo sets dst[i] = [Pow](x[i], y). dst and x have the same length and may be the same
// slice.
func PowByTo(dst, x []float64, y float64) {
	var powers [64]float64
	for i := range powers[:min(len(powers), len(dst))] {
		powers[i] = y
	}
	for x = x[:len(dst)]; len(dst) > 0; {
		n := min(len(dst), len(powers))
		powTo(active, dst[:n], x[:n], powers[:n])
		dst, x = dst[n:], x[n:]
	}
}

// powTo sets dst[i] = [Pow](x[i], y[i]). The slices have the same length; dst may be the same
// slice as x or y.
func powTo(k dispatch, dst, x, y []float64) {
	x, y = x[:len(dst)], y[:len(dst)]
	if k.avx512 {
		dst, x, y = powInGroups(wide, dst, x, y)
	}
	if k.avx2 {
		dst, x, y = powInGroups(quad, dst, x, y)
	}
	for i, v := range x {
		dst[i] = Pow(v, y[i])
	}
}

// powInGroups is the analogue of function.inGroups for Pow, which has two arguments.
func powInGroups(size int, dst, x, y []float64) (dstLeft, xLeft, yLeft []float64) {
	for len(dst) >= size {
		n := min(len(dst), callSize)
		var left int
		if size == wide {
			left = widePowGroups(&dst[0], &x[0], &y[0], n, &expTable, &logTable)
		} else {
			left = powGroups(&dst[0], &x[0], &y[0], n, &expTable, &logTable)
		}
		done := n - left
		dst, x, y = dst[done:], x[done:], y[done:]
		if left >= size {
			for i := range size {
				dst[i] = Pow(x[i], y[i])
			}
			dst, x, y = dst[size:], x[size:], y[size:]
		}
	}
	return dst, x, y
}
