package tree

import "math"

// gauss returns the points, ascending, and the weights of Gauss–Legendre quadrature with n
// points on [0, 1]. For a polynomial of a degree below 2n, the weighted sum of its values at
// the points equals its integral. Point i equals 1 minus point n-1-i; each is computed
// accurately by itself, without cancellation.
//
// The points are the roots of the Legendre polynomial. They are found by Newton's method, which
// starts from the first term of Tricomi's approximation (Abramowitz and Stegun, Handbook of
// Mathematical Functions, 22.16.6, 25.4.29).
func gauss(n int) (points, weights []float64) {
	points, weights = make([]float64, n), make([]float64, n)
	for i := range (n + 1) / 2 {
		x := cosine(math.Pi * (float64(i) + 0.75) / (float64(n) + 0.5))
		if 2*i+1 == n {
			x = 0
		}
		var slope float64
		for range 8 { // from so close a start, each step doubles the number of correct digits
			var p float64
			p, slope = legendre(n, x)
			x -= p / slope
		}
		_, slope = legendre(n, x)
		w := 1 / (float64((1-x)*(1+x)) * float64(slope*slope)) // half of the weight for [-1, 1]
		points[i], points[n-1-i] = (1-x)/2, (1+x)/2
		weights[i], weights[n-1-i] = w, w
	}
	return points, weights
}

// legendre returns the value and the slope of the Legendre polynomial of degree n at x. x must
// not be ±1.
func legendre(n int, x float64) (p, slope float64) {
	before, p := 1.0, x
	for k := 2; k <= n; k++ {
		k := float64(k)
		before, p = p, (float64((k+k-1)*float64(x*p))-float64((k-1)*before))/k
	}
	return p, float64(n) * (before - float64(x*p)) / float64((1-x)*(1+x))
}

// cosine returns the cosine of x in [0, π/2], computed from its series. It gives the start of
// Newton's method, which corrects the small error of the series.
func cosine(x float64) float64 {
	square, term, sum := -x*x, 1.0, 1.0
	for k := 2.0; k < 24; k += 2 {
		term = float64(term * (square / (k * (k - 1))))
		sum += term
	}
	return sum
}
