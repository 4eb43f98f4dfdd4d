package kernel

// Number is the set of element types that collectives reduce.
type Number interface {
	float32 | float64 | int32 | int64 | uint8
}

// AddTo sets dst[i] = dst[i] + src[i]. src is at least as long as dst; its elements after
// len(dst) are ignored. Integers wrap around.
func AddTo[T Number](dst, src []T) { addTo(active, dst, src) }

func addTo[T Number](k dispatch, dst, src []T) {
	src = src[:len(dst)]
	if k.avx2 && len(dst) >= 8 && combineFloats(dst, src, false) {
		return
	}
	if d, ok := any(dst).([]uint8); ok {
		addBytes(d, d, any(src).([]uint8))
		return
	}
	i := 0
	for ; i+8 <= len(dst); i += 8 {
		p, q := (*[8]T)(dst[i:i+8]), (*[8]T)(src[i:i+8])
		p[0] += q[0]
		p[1] += q[1]
		p[2] += q[2]
		p[3] += q[3]
		p[4] += q[4]
		p[5] += q[5]
		p[6] += q[6]
		p[7] += q[7]
	}
	for ; i < len(dst); i++ {
		dst[i] += src[i]
	}
}

// combineFloats runs AddTo or ProdTo in assembly, and reports whether there is assembly for the
// element type.
func combineFloats[T Number](dst, src []T, product bool) bool {
	switch d := any(dst).(type) {
	case []float64:
		s := any(src).([]float64)
		for len(d) > 0 {
			n := min(len(d), callSize)
			if product {
				prodTo64(&d[0], &s[0], n)
			} else {
				addTo64(&d[0], &s[0], n)
			}
			d, s = d[n:], s[n:]
		}
	case []float32:
		s := any(src).([]float32)
		for len(d) > 0 {
			n := min(len(d), callSize)
			if product {
				prodTo32(&d[0], &s[0], n)
			} else {
				addTo32(&d[0], &s[0], n)
			}
			d, s = d[n:], s[n:]
		}
	default:
		return false
	}
	return true
}

// addBytes sets dst[i] = x[i] + y[i]. It adds eight bytes at a time in one word: sums of the
// low seven bits of each byte do not carry into the next byte, and the top bits are added by
// exclusive or.
func addBytes(dst, x, y []uint8) {
	const low = 0x7f7f7f7f7f7f7f7f
	x, y = x[:len(dst)], y[:len(dst)]
	i := 0
	for ; i+8 <= len(dst); i += 8 {
		d, a, b := dst[i:i+8:i+8], word(x[i:i+8:i+8]), word(y[i:i+8:i+8])
		s := (a&low + b&low) ^ ((a ^ b) &^ low)
		d[0], d[1], d[2], d[3] = uint8(s), uint8(s>>8), uint8(s>>16), uint8(s>>24)
		d[4], d[5], d[6], d[7] = uint8(s>>32), uint8(s>>40), uint8(s>>48), uint8(s>>56)
	}
	for ; i < len(dst); i++ {
		dst[i] = x[i] + y[i]
	}
}

// word returns eight bytes as one little-endian word; the compiler makes it a single load.
func word(b []uint8) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// ProdTo sets dst[i] = dst[i] * src[i]. src is at least as long as dst;
// integers wrap around.
func ProdTo[T Number](dst, src []T) { prodTo(active, dst, src) }

func prodTo[T Number](k dispatch, dst, src []T) {
	src = src[:len(dst)]
	if k.avx2 && len(dst) >= 8 && combineFloats(dst, src, true) {
		return
	}
	i := 0
	for ; i+8 <= len(dst); i += 8 {
		p, q := (*[8]T)(dst[i:i+8]), (*[8]T)(src[i:i+8])
		p[0] *= q[0]
		p[1] *= q[1]
		p[2] *= q[2]
		p[3] *= q[3]
		p[4] *= q[4]
		p[5] *= q[5]
		p[6] *= q[6]
		p[7] *= q[7]
	}
	for ; i < len(dst); i++ {
		dst[i] *= src[i]
	}
}

// MaxTo sets dst[i] to the larger of dst[i] and src[i]. src is at least as long as dst. MaxTo
// follows the rules of maximum in IEEE 754-2019: if either element is NaN, the result is the
// NaN of [OneNaN], and -0 is smaller than +0. So the bits of the maximum of several values do
// not depend on their order.
func MaxTo[T Number](dst, src []T) {
	src = src[:len(dst)]
	switch d := any(dst).(type) {
	case []float64:
		maxFloats(d, any(src).([]float64), canonical64)
	case []float32:
		maxFloats(d, any(src).([]float32), canonical32)
	default:
		for i, s := range src {
			dst[i] = max(dst[i], s)
		}
	}
}

// MinTo sets dst[i] to the smaller of dst[i] and src[i], by the rules of
// [MaxTo].
func MinTo[T Number](dst, src []T) {
	src = src[:len(dst)]
	switch d := any(dst).(type) {
	case []float64:
		minFloats(d, any(src).([]float64), canonical64)
	case []float32:
		minFloats(d, any(src).([]float32), canonical32)
	default:
		for i, s := range src {
			dst[i] = min(dst[i], s)
		}
	}
}

// maxFloats uses the builtin max, which follows the IEEE rules without a branch on the data.
// Only the bits of a NaN result depend on the processor, so nan replaces it.
func maxFloats[T Float](dst, src []T, nan T) {
	dst = dst[:len(src)]
	for i, s := range src {
		m := max(dst[i], s)
		if m != m {
			m = nan
		}
		dst[i] = m
	}
}

func minFloats[T Float](dst, src []T, nan T) {
	dst = dst[:len(src)]
	for i, s := range src {
		m := min(dst[i], s)
		if m != m {
			m = nan
		}
		dst[i] = m
	}
}
