package main

import "math"

// The equations of k factors x are kept as the sums over ratings r of the other side's factors f:
// f·fᵀ row by row, r·f behind it, and the number of ratings.

func size(k int) int { return k*k + k + 1 }

// of returns the part of an item, which count from 1, in what holds n numbers of each.
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

// solve puts into x what makes Σ (r − f·x)² + λ·n·x² least, for n ratings r, by Cholesky's
// factors L·Lᵀ, in the place of sums. Without ratings x stays as it is.
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
