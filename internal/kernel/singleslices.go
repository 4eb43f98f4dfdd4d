package kernel

import "unsafe"

// The slice forms for float32, like those for float64.

// Exp32To sets dst[i] = [Exp32](src[i]).
func Exp32To(dst, src []float32) { applySingle(active, exp32Of, dst, src) }

// Log32To sets dst[i] = [Log32](src[i]).
func Log32To(dst, src []float32) { applySingle(active, log32Of, dst, src) }

// Log1p32To sets dst[i] = [Log1p32](src[i]).
func Log1p32To(dst, src []float32) { applySingle(active, log1p32Of, dst, src) }

// Sigmoid32To sets dst[i] = [Sigmoid32](src[i]).
func Sigmoid32To(dst, src []float32) { applySingle(active, sigmoid32Of, dst, src) }

// Tanh32To sets dst[i] = [Tanh32](src[i]).
func Tanh32To(dst, src []float32) { applySingle(active, tanh32Of, dst, src) }

// single names an elementary function of float32.
type single int

const (
	exp32Of single = iota
	log32Of
	log1p32Of
	sigmoid32Of
	tanh32Of
	singleCount
)

// applySingle applies a function to slices. Assembly takes all whole groups.
func applySingle(k dispatch, f single, dst, src []float32) {
	src = src[:len(dst)]
	size := quad
	if k.avx512 {
		size = wide
	}
	for k.avx2 && len(dst) >= size {
		n := min(len(dst), callSize)
		n -= n % size
		if k.avx512 {
			f.wideGroups(unsafe.SliceData(dst), unsafe.SliceData(src), n)
		} else {
			f.groups(unsafe.SliceData(dst), unsafe.SliceData(src), n)
		}
		dst, src = dst[n:], src[n:]
	}
	scalar := f.scalar()
	for i, v := range src {
		dst[i] = scalar(v)
	}
}

// groups runs the form in assembly over n values, a multiple of quad.
func (f single) groups(dst, src *float32, n int) {
	switch f {
	case exp32Of:
		exp32Groups(dst, src, n)
	case log32Of:
		log32Groups(dst, src, n)
	case log1p32Of:
		log1p32Groups(dst, src, n)
	case sigmoid32Of:
		sigmoid32Groups(dst, src, n)
	default:
		tanh32Groups(dst, src, n)
	}
}

// wideGroups is groups for AVX-512, n being a multiple of wide.
func (f single) wideGroups(dst, src *float32, n int) {
	switch f {
	case exp32Of:
		wideExp32Groups(dst, src, n)
	case log32Of:
		wideLog32Groups(dst, src, n)
	case log1p32Of:
		wideLog1p32Groups(dst, src, n)
	case sigmoid32Of:
		wideSigmoid32Groups(dst, src, n)
	default:
		wideTanh32Groups(dst, src, n)
	}
}

// scalar returns the scalar form.
func (f single) scalar() func(float32) float32 {
	switch f {
	case exp32Of:
		return Exp32
	case log32Of:
		return Log32
	case log1p32Of:
		return Log1p32
	case sigmoid32Of:
		return Sigmoid32
	default:
		return Tanh32
	}
}
