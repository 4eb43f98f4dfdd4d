package kernel

import "math"

// The NaN that folds produce has the bits of math.NaN(), because user code most often contains
// this NaN.
var (
	canonical64 = math.NaN()
	canonical32 = math.Float32frombits(0x7fc00000)
)

// OneNaN replaces every NaN in x by math.NaN() and changes nothing else; it does nothing for
// integers. Processors and compilers differ in which of two NaN an addition returns, and in the
// sign of the NaN that infinities produce. So OneNaN is called at the end of a chain of
// additions or products whose bits are visible. Without a NaN it costs less than an addition
// for each element.
func OneNaN[T Number](x []T) { oneNaN(active, x) }

func oneNaN[T Number](k dispatch, x []T) {
	switch x := any(x).(type) {
	case []float64:
		for k.avx2 && len(x) >= 16 {
			n := min(len(x), callSize) &^ 15
			if nans64(&x[0], n) != 0 {
				replaceNaN(x[:n], canonical64)
			}
			x = x[n:]
		}
		replaceNaN(x, canonical64)
	case []float32:
		for k.avx2 && len(x) >= 32 {
			n := min(len(x), callSize) &^ 31
			if nans32(&x[0], n) != 0 {
				replaceNaN(x[:n], canonical32)
			}
			x = x[n:]
		}
		replaceNaN(x, canonical32)
	}
}

// SumTo sets dst[i] = x[i] + y[i], and replaces each NaN among the sums as OneNaN does. x and y
// are at least as long as dst. Each of them begins at the same address as dst or does not
// overlap it. Integers wrap around.
func SumTo[T Number](dst, x, y []T) { sumTo(active, dst, x, y) }

func sumTo[T Number](k dispatch, dst, x, y []T) {
	if k.avx2 {
		n := sumFloats(dst, x, y)
		dst, x, y = dst[n:], x[n:], y[n:]
	}
	if d, ok := any(dst).([]uint8); ok {
		addBytes(d, any(x).([]uint8), any(y).([]uint8))
		return
	}
	x, y = x[:len(dst)], y[:len(dst)]
	i := 0
	for ; i+4 <= len(dst); i += 4 {
		d, p, q := (*[4]T)(dst[i:i+4]), (*[4]T)(x[i:i+4]), (*[4]T)(y[i:i+4])
		d[0] = p[0] + q[0]
		d[1] = p[1] + q[1]
		d[2] = p[2] + q[2]
		d[3] = p[3] + q[3]
	}
	for ; i < len(dst); i++ {
		dst[i] = x[i] + y[i]
	}
	oneNaN(dispatch{}, dst)
}

// sumFloats computes the first elements of SumTo in assembly, as many as possible, and returns
// their number.
func sumFloats[T Number](dst, x, y []T) int {
	i := 0
	switch d := any(dst).(type) {
	case []float64:
		x, y := any(x).([]float64), any(y).([]float64)
		for ; len(d)-i >= 16; i += min(len(d)-i, callSize) &^ 15 {
			n := min(len(d)-i, callSize) &^ 15
			if sum64(&d[i], &x[i], &y[i], n) != 0 {
				replaceNaN(d[i:i+n], canonical64)
			}
		}
	case []float32:
		x, y := any(x).([]float32), any(y).([]float32)
		for ; len(d)-i >= 32; i += min(len(d)-i, callSize) &^ 31 {
			n := min(len(d)-i, callSize) &^ 31
			if sum32(&d[i], &x[i], &y[i], n) != 0 {
				replaceNaN(d[i:i+n], canonical32)
			}
		}
	}
	return i
}

func replaceNaN[T Float](x []T, nan T) {
	for len(x) >= 8 {
		// The sum of the eight elements is NaN if one of them is NaN. It is also NaN if
		// infinities cancel out; in that case the elements are tested although there is no NaN.
		p := (*[8]T)(x[:8])
		if s := ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7])); s != s {
			for i, v := range p {
				if v != v {
					p[i] = nan
				}
			}
		}
		x = x[8:]
	}
	for i, v := range x {
		if v != v {
			x[i] = nan
		}
	}
}

// OneNaNOf is OneNaN for a single value.
func OneNaNOf[T Float](v T) T {
	if v == v {
		return v
	}
	if is64[T]() {
		return T(canonical64)
	}
	return T(canonical32)
}
