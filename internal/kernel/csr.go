package kernel

// DotCSR multiplies sparse rows by a vector: out[i] is acc = acc + value*w[column]
// from 0 over the entries of row i in their order, for each row of x.
func DotCSR(x CSR, w, out []float64) {
	n := x.Rows()
	out = out[:n]
	for i := range out {
		col, val := x.Row(i)
		col = col[:len(val)]
		var acc float64
		for p, v := range val {
			acc += float64(v * w[col[p]])
		}
		out[i] = acc
	}
}

// AddScaledCSR adds to out the sparse rows of x scaled by coef, in row order
// and the order of the entries: out[column] = out[column] + coef[i]*value. It is
// the gradient of a linear model; an absent entry leaves out as it is.
func AddScaledCSR(x CSR, coef, out []float64) {
	for i, c := range coef[:x.Rows()] {
		col, val := x.Row(i)
		col = col[:len(val)]
		for p, v := range val {
			out[col[p]] += float64(c * v)
		}
	}
}

// SquareCSR adds to out the squares of the entries of the sparse rows of x,
// weighted by h, in row order and the order of the entries: out[column] =
// out[column] + (h[i]*value)*value. It is the diagonal of the Hessian of a
// linear model. A nil h means that every row weighs 1.
func SquareCSR(x CSR, h, out []float64) {
	for i := range x.Rows() {
		weight := 1.0
		if h != nil {
			weight = h[i]
		}
		col, val := x.Row(i)
		col = col[:len(val)]
		for p, v := range val {
			out[col[p]] += float64(float64(weight*v) * v)
		}
	}
}
