package kernel

// AddOuterRows adds to out the outer products of coefficients and rows, in row
// order: out[c*d+j] = out[c*d+j] + coef[i*k+c]*x[i*d+j] for i = 0, 1, …, n-1.
// It is the gradient of a model with k outputs, coef holding k values a row and
// out k rows of d features. For k = 1 it is [AddScaledRows].
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

// addScaled4 adds four scaled rows to out, one after the other; the rows are at
// least as long as out.
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

// GramRows adds to out the weighted products of the features of the n rows of
// x, in row order: out[a*(a+1)/2+b] = out[a*(a+1)/2+b] + (h[i]*x[i*d+a])*x[i*d+b]
// for b ≤ a and i = 0, 1, …, n-1. It is the Hessian of a linear model. out is
// the lower triangle row by row, d*(d+1)/2 values. A nil h means that every row
// weighs 1.
func GramRows(x []float64, n, d int, h, out []float64) { gramRows(active, x, n, d, h, out) }

func gramRows(form dispatch, x []float64, n, d int, h, out []float64) {
	x = x[:n*d]
	out = out[:d*(d+1)/2]
	if h != nil {
		h = h[:n]
	}
	if form.avx2 && d >= lanes {
		gramTiles(form, x, n, d, h, out)
		return
	}
	i := 0
	for ; i+4 <= n; i += 4 {
		r0, r1, r2, r3 := rows4(x, i, d)
		h0, h1, h2, h3 := 1.0, 1.0, 1.0, 1.0
		if h != nil {
			h0, h1, h2, h3 = h[i], h[i+1], h[i+2], h[i+3]
		}
		row := out
		for a, v := range r0 {
			addScaled4(float64(h0*v), float64(h1*r1[a]), float64(h2*r2[a]), float64(h3*r3[a]), r0, r1, r2, r3, row[:a+1])
			row = row[a+1:]
		}
	}
	for ; i < n; i++ {
		weight := 1.0
		if h != nil {
			weight = h[i]
		}
		r := x[i*d : i*d+d]
		row := out
		for a, v := range r {
			axpy(form, float64(weight*v), r[:a+1], row[:a+1])
			row = row[a+1:]
		}
	}
}
