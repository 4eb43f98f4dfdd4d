package kernel

// AddOuterRows adds to out the outer products of coefficients and rows, in row order:
// out[c*d+j] = out[c*d+j] + coef[i*k+c]*x[i*d+j] for i = 0, 1, …, n-1. The result is the
// gradient of a model with k outputs. coef has k values for each row of x, and out has k rows
// of d features. For k = 1 the result equals the result of [AddScaledRows].
func AddOuterRows(x []float64, n, d int, coef []float64, k int, out []float64) {
	addOuterRows(active, x, n, d, coef, k, out)
}

func addOuterRows(form dispatch, x []float64, n, d int, coef []float64, k int, out []float64) {
	x = x[:n*d]
	coef = coef[:n*k]
	out = out[:k*d]
	if form.avx2 && n > 0 && k > 0 {
		addOuterTiles(form, x, n, d, coef, k, out)
		return
	}
	i := 0
	for ; i+4 <= n; i += 4 {
		r0, r1, r2, r3 := rows4(x, i, d)
		q := coef[i*k : (i+4)*k]
		for c := range k {
			addScaled4(q[c], q[k+c], q[2*k+c], q[3*k+c], r0, r1, r2, r3, out[c*d:c*d+d])
		}
	}
	for ; i < n; i++ {
		row := x[i*d : i*d+d]
		for c, v := range coef[i*k : i*k+k] {
			axpy(form, v, row, out[c*d:c*d+d])
		}
	}
}

// addScaled4 adds k0*r0, k1*r1, k2*r2 and k3*r3 to out, in this order. The rows are at least as
// long as out.
func addScaled4[T Float](k0, k1, k2, k3 T, r0, r1, r2, r3, out []T) {
	r0, r1, r2, r3 = r0[:len(out)], r1[:len(out)], r2[:len(out)], r3[:len(out)]
	for j, o := range out {
		o += T(k0 * r0[j])
		o += T(k1 * r1[j])
		o += T(k2 * r2[j])
		o += T(k3 * r3[j])
		out[j] = o
	}
}
