package kernel

import "unsafe"

// Float is the set of element types of the vector primitives.
type Float interface {
	float32 | float64
}

// is64 reports whether the element type is float64; the compiler evaluates it to a constant.
func is64[T Float]() bool {
	var v T
	return unsafe.Sizeof(v) == 8
}

// lanesOf returns the number of elements of an AVX2 register.
func lanesOf[T Float]() int {
	if is64[T]() {
		return 4
	}
	return 8
}

// of64 and of32 return a pointer to the first element of a slice, for assembly.
func of64[T Float](x []T) *float64 { return (*float64)(unsafe.Pointer(unsafe.SliceData(x))) }
func of32[T Float](x []T) *float32 { return (*float32)(unsafe.Pointer(unsafe.SliceData(x))) }

// Dot returns the inner product of x and y, which have the same length. It is computed by the
// steps acc = acc + x[i]*y[i] for i = 0, 1, …, with acc = 0 at the beginning. This is one chain
// of additions, so the latency of an addition bounds the speed. Use [DotRows] for several inner
// products at a time.
func Dot[T Float](x, y []T) T {
	y = y[:len(x)]
	var acc T
	for i, v := range x {
		acc += T(v * y[i])
	}
	return OneNaNOf(acc)
}

// Axpy sets dst[i] = dst[i] + a*x[i].
func Axpy[T Float](a T, x, dst []T) { axpy(active, a, x, dst) }

func axpy[T Float](k dispatch, a T, x, dst []T) {
	x = x[:len(dst)]
	for k.avx2 && len(dst) >= 8 {
		n := min(len(dst), callSize)
		if is64[T]() {
			axpy64(float64(a), of64(x), of64(dst), n)
		} else {
			axpy32(float32(a), of32(x), of32(dst), n)
		}
		x, dst = x[n:], dst[n:]
	}
	i := 0
	for ; i+4 <= len(dst); i += 4 {
		p, q := (*[4]T)(dst[i:i+4]), (*[4]T)(x[i:i+4])
		p[0] += T(a * q[0])
		p[1] += T(a * q[1])
		p[2] += T(a * q[2])
		p[3] += T(a * q[3])
	}
	for ; i < len(dst); i++ {
		dst[i] += T(a * x[i])
	}
}

// Scale sets dst[i] = a*dst[i].
func Scale[T Float](a T, dst []T) { scaleBy(active, a, dst) }

func scaleBy[T Float](k dispatch, a T, dst []T) {
	for k.avx2 && len(dst) >= 8 {
		n := min(len(dst), callSize)
		if is64[T]() {
			scale64(float64(a), of64(dst), n)
		} else {
			scale32(float32(a), of32(dst), n)
		}
		dst = dst[n:]
	}
	for i := range dst {
		dst[i] *= a
	}
}

// RowNorms writes the squared Euclidean norm of each of the len(dst) rows of x
// to dst. Each is the sum of squares in increasing feature order.
func RowNorms[T Float](x []T, d int, dst []T) {
	rowNorms(active, x, d, dst)
}

func rowNorms[T Float](k dispatch, x []T, d int, dst []T) {
	n := len(dst)
	x = x[:n*d]
	i := 0
	for step := rowsPerCall[T](d); k.avx2 && n-i >= lanesOf[T](); {
		m := min(n-i, step)
		if is64[T]() {
			rowNorms64(of64(x[i*d:]), m, d, of64(dst[i:]))
		} else {
			rowNorms32(of32(x[i*d:]), m, d, of32(dst[i:]))
		}
		i += m
	}
	left := dst[i:] // in the elements before, the assembly has replaced every NaN by math.NaN()
	for ; i+4 <= n; i += 4 {
		r0, r1, r2, r3 := rows4(x, i, d)
		var a0, a1, a2, a3 T
		for j, v := range r0 {
			a0 += T(v * v)
			a1 += T(r1[j] * r1[j])
			a2 += T(r2[j] * r2[j])
			a3 += T(r3[j] * r3[j])
		}
		q := (*[4]T)(dst[i : i+4])
		q[0], q[1], q[2], q[3] = a0, a1, a2, a3
	}
	for ; i < n; i++ {
		r := x[i*d : i*d+d]
		dst[i] = Dot(r, r)
	}
	oneNaN(k, left)
}

// rows4 returns rows i to i+3 of x, in a form that tells the compiler that their lengths are
// equal.
func rows4[T Float](x []T, i, d int) (r0, r1, r2, r3 []T) {
	b := x[i*d : (i+4)*d]
	r0 = b[:d]
	r1 = b[d : 2*d][:len(r0)]
	r2 = b[2*d : 3*d][:len(r0)]
	r3 = b[3*d : 4*d][:len(r0)]
	return r0, r1, r2, r3
}

// DotRows multiplies a matrix by a vector: out[i] = [Dot](row i of x, w) for the n rows of x,
// with the bits of Dot. Several rows are processed together, so that the latency of the
// additions of one row overlaps with additions of other rows.
func DotRows[T Float](x []T, n, d int, w, out []T) {
	dotRows(active, x, n, d, w, out)
}

func dotRows[T Float](k dispatch, x []T, n, d int, w, out []T) {
	x = x[:n*d]
	w = w[:d]
	out = out[:n]
	i := 0
	for step := rowsPerCall[T](d); k.avx2 && n-i >= lanesOf[T](); {
		m := min(n-i, step)
		if is64[T]() {
			dotRows64(of64(x[i*d:]), m, d, of64(w), of64(out[i:]))
		} else {
			dotRows32(of32(x[i*d:]), m, d, of32(w), of32(out[i:]))
		}
		i += m
	}
	left := out[i:] // in the elements before, the assembly has replaced every NaN by math.NaN()
	for ; i+4 <= n; i += 4 {
		r0, r1, r2, r3 := rows4(x, i, d)
		w := w[:len(r0)]
		var a0, a1, a2, a3 T
		for j, v := range r0 {
			c := w[j]
			a0 += T(v * c)
			a1 += T(r1[j] * c)
			a2 += T(r2[j] * c)
			a3 += T(r3[j] * c)
		}
		q := (*[4]T)(out[i : i+4])
		q[0], q[1], q[2], q[3] = a0, a1, a2, a3
	}
	for ; i < n; i++ {
		out[i] = Dot(x[i*d:i*d+d], w)
	}
	oneNaN(k, left)
}

// AddScaledRows adds to out the rows of x scaled by coef, in row order: out[j] = out[j] +
// coef[i]*x[i][j] for i = 0, 1, …, n-1. The result is the gradient of a linear model, with one
// coefficient per row. Several rows are added in one pass over out; they are still added to
// each out[j] one after the other.
func AddScaledRows[T Float](x []T, n, d int, coef, out []T) {
	addScaledRows(active, x, n, d, coef, out)
}

func addScaledRows[T Float](k dispatch, x []T, n, d int, coef, out []T) {
	x = x[:n*d]
	coef = coef[:n]
	out = out[:d]
	i := 0
	for step := rowsPerCall[T](d); k.avx2 && i < n; {
		m := min(n-i, step)
		if is64[T]() {
			addScaledRows64(of64(x[i*d:]), m, d, of64(coef[i:]), of64(out))
		} else {
			addScaledRows32(of32(x[i*d:]), m, d, of32(coef[i:]), of32(out))
		}
		i += m
	}
	for ; i+4 <= n; i += 4 {
		r0, r1, r2, r3 := rows4(x, i, d)
		c := (*[4]T)(coef[i : i+4])
		addScaled4(c[0], c[1], c[2], c[3], r0, r1, r2, r3, out)
	}
	for ; i < n; i++ {
		axpy(k, coef[i], x[i*d:i*d+d], out)
	}
}
