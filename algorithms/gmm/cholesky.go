package gmm

import "math"

// decompose writes the Cholesky factor of a + shift·I to l. a and l are lower triangles, row by
// row. It returns false unless the matrix is safely positive definite.
func decompose(a []float64, n int, shift float64, l []float64) bool {
	var largest float64
	for i := range n {
		largest = max(largest, math.Abs(a[triangle(i)+i]))
	}
	floor := float64(n) * 0x1p-52 * (largest + shift)
	for i := range n {
		row := l[triangle(i) : triangle(i)+i+1]
		for j := range i {
			other := l[triangle(j) : triangle(j)+j+1]
			sum := a[triangle(i)+j]
			for k := range j {
				sum -= float64(row[k] * other[k])
			}
			row[j] = sum / other[j]
		}
		pivot := a[triangle(i)+i] + shift
		for _, v := range row[:i] {
			pivot -= float64(v * v)
		}
		if !(pivot > floor) || math.IsInf(pivot, 0) {
			return false
		}
		row[i] = math.Sqrt(pivot)
	}
	return true
}

// invert writes the inverse of the lower triangle l to the n×n matrix out, row by row.
func invert(l []float64, n int, out []float64) {
	clear(out[:n*n])
	for c := range n {
		for i := c; i < n; i++ {
			row := l[triangle(i) : triangle(i)+i+1]
			sum := 0.0
			if i == c {
				sum = 1
			}
			for k := c; k < i; k++ {
				sum -= float64(row[k] * out[k*n+c])
			}
			out[i*n+c] = sum / row[i]
		}
	}
}
