package main

import "math"

// The equations for the k factors of a user or item are size(k) sums over its ratings. Let r be
// a rating and f the factors of the item or user at the other side of the rating. The equations
// have, in this order, the sum of f·fᵀ (a k×k matrix, row by row), the sum of r·f, and the
// number of ratings.

func size(k int) int { return k*k + k + 1 }

// of returns the n numbers of the given item. The slice all has n numbers for each item. Items
// count from 1.
func of(all []float64, item int64, n int) []float64 {
	lo := (int(item) - 1) * n
	return all[lo : lo+n : lo+n]
}

// addTo adds a rating to the equations in sums. f has the factors of the item or user at the
// other side. The conversions of products forbid fused multiply-add, so that the results have
// the same bits on all processors.
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

// solve sets x to the minimum of Σ (r − f·x)² + λ·n·x², where the sum is over the n ratings in
// the equations sums. It adds λ·n to the diagonal of the matrix in sums, and then overwrites
// the matrix with its Cholesky factor L, where L·Lᵀ is the matrix. If there are no ratings, x
// is not changed.
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
