package kernel

// Float is the set of element types of the vector primitives.
type Float interface {
	float32 | float64
}

// Dot returns the inner product of x and y, which have the same length:
// acc = acc + x[i]*y[i] from 0 in increasing i. Being one output it is one
// chain of additions and runs at the latency of an addition; for several inner
// products at a time use [DotRows].
func Dot[T Float](x, y []T) T {
	y = y[:len(x)]
	var acc T
	for i, v := range x {
		acc += T(v * y[i])
	}
	return acc
}

// Sum returns acc = acc + x[i] from 0 in increasing i.
func Sum[T Float](x []T) T {
	var acc T
	for _, v := range x {
		acc += v
	}
	return acc
}

// Axpy sets dst[i] = dst[i] + a*x[i].
func Axpy[T Float](a T, x, dst []T) {
	x = x[:len(dst)]
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
func Scale[T Float](a T, dst []T) {
	for i := range dst {
		dst[i] *= a
	}
}

// RowNorms writes the squared Euclidean norm of each of the len(dst) rows of x
// to dst. Each is the sum of squares in increasing feature order.
func RowNorms[T Float](x []T, d int, dst []T) {
	n := len(dst)
	i := 0
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
}

// rows4 returns rows i..i+3 of x with lengths the compiler knows to be equal.
func rows4[T Float](x []T, i, d int) (r0, r1, r2, r3 []T) {
	b := x[i*d : (i+4)*d]
	r0 = b[:d]
	r1 = b[d : 2*d][:len(r0)]
	r2 = b[2*d : 3*d][:len(r0)]
	r3 = b[3*d : 4*d][:len(r0)]
	return r0, r1, r2, r3
}

// DotRows multiplies a matrix by a vector: out[i] = [Dot](row i of x, w) for
// the n rows of x, with the bits of Dot. Four rows advance together, so that
// four chains of additions hide each other's latency.
func DotRows[T Float](x []T, n, d int, w, out []T) {
	w = w[:d]
	out = out[:n]
	i := 0
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
}

// AddScaledRows adds to out the rows of x scaled by coef, in row order:
// out[j] = out[j] + coef[i]*x[i][j] for i = 0, 1, …, n-1. It is the gradient of
// a linear model, with one coefficient a row. Four rows are taken in one pass
// over out; each out[j] still receives them one after the other.
func AddScaledRows[T Float](x []T, n, d int, coef, out []T) {
	coef = coef[:n]
	out = out[:d]
	i := 0
	for ; i+4 <= n; i += 4 {
		r0, r1, r2, r3 := rows4(x, i, d)
		out := out[:len(r0)]
		k := (*[4]T)(coef[i : i+4])
		k0, k1, k2, k3 := k[0], k[1], k[2], k[3]
		for j, v := range r0 {
			o := out[j]
			o += T(k0 * v)
			o += T(k1 * r1[j])
			o += T(k2 * r2[j])
			o += T(k3 * r3[j])
			out[j] = o
		}
	}
	for ; i < n; i++ {
		Axpy(coef[i], x[i*d:i*d+d], out)
	}
}
