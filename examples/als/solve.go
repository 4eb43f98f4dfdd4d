package main

import "math"

// The equations for k factors x are kept as sums over the ratings r, with the factors f of the
// other side: f·fᵀ row by row, then r·f, and then the number of ratings.

func size(k int) int { return k*k + k + 1 }

// of returns the part of an item in a slice that has n numbers for each. Items count from 1.
func of(all []float64, item int64, n int) []float64 {
	lo := (int(item) - 1) * n
	return all[lo : lo+n : lo+n]
}

// addTo adds a rating. Products are rounded before they are added: the same bits everywhere.
func addTo(sums, f []float64, rating float64) {
	k := len(f)
	for i, x := range f {
		for j, y := range f {
			sums[i*k+j] += float64(x * y)
		}
		sums[k*k+i] += float64(rating * x)
	}
	sums[k*k+k]++
}

// solve sets x to the minimum of Σ (r − f·x)² + λ·n·x² over n ratings r. It computes Cholesky
// factors L·Lᵀ in the memory of sums. Without ratings x stays unchanged.
func solve(sums []float64, lambda float64, x []float64) {
	k := len(x)
	a, n := sums[:k*k], sums[k*k+k]
	if n == 0 {
		return
	}
	copy(x, sums[k*k:])
	for i := range k {
		a[i*k+i] += float64(lambda * n)
		for j := range i + 1 {
			s := a[i*k+j] - dot(a[i*k:i*k+j], a[j*k:j*k+j])
			if i == j {
				a[i*k+i] = math.Sqrt(s)
			} else {
				a[i*k+j] = s / a[j*k+j]
			}
		}
		x[i] = (x[i] - dot(a[i*k:i*k+i], x[:i])) / a[i*k+i] // L·z = r·f
	}
	for i := k - 1; i >= 0; i-- { // Lᵀ·x = z
		for j := i + 1; j < k; j++ {
			x[i] -= float64(a[j*k+i] * x[j])
		}
		x[i] /= a[i*k+i]
	}
}

func dot(x, y []float64) (sum float64) {
	for i := range x {
		sum += float64(x[i] * y[i])
	}
	return sum
}
