package prepare

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// symmetricEigen returns the eigenvalues of a symmetric matrix in descending order, and their
// eigenvectors, which have length 1, as rows. a is n×n, row-major, and is overwritten. The sign
// of each eigenvector is chosen so that its component of the largest absolute value is
// positive. If several components have that absolute value, the first of them is positive.
//
// The matrix is brought to tridiagonal form by Householder reflections. Implicit QL steps
// with Wilkinson's shift then diagonalise it (Martin, Reinsch and Wilkinson, Numerische
// Mathematik 11, 1968; Bowdler, Martin, Reinsch and Wilkinson, in the same volume; Golub and
// Van Loan, Matrix Computations, §8.3). It takes about 10·n³ operations, in an order that
// depends only on the numbers in a. It calls no mathematical functions except square roots.
func symmetricEigen(ctx context.Context, a []float64, n int) (values []float64, vectors [][]float64, err error) {
	most := 0.0
	for _, v := range a {
		most = max(most, math.Abs(v))
	}
	if most-most != 0 {
		return nil, nil, fmt.Errorf("the matrix has a component that is no finite number")
	}
	// Scaling by a power of two brings the largest entry near 1, so that no square exceeds the
	// range of float64.
	_, exponent := math.Frexp(most)
	for i, v := range a {
		a[i] = math.Ldexp(v, -exponent)
	}
	diagonal, beside, z, err := tridiagonalize(ctx, a, n)
	if err != nil {
		return nil, nil, err
	}
	if err := diagonalize(ctx, diagonal, beside, z); err != nil {
		return nil, nil, err
	}
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(diagonal[j], diagonal[i]) })
	for _, i := range order {
		values = append(values, math.Ldexp(diagonal[i], exponent))
		orient(z[i])
		vectors = append(vectors, z[i])
	}
	return values, vectors, nil
}

// orient negates a vector if its component of the largest absolute value is negative.
func orient(v []float64) {
	at := 0
	for j := range v {
		if math.Abs(v[j]) > math.Abs(v[at]) {
			at = j
		}
	}
	if v[at] < 0 {
		for j := range v {
			v[j] = -v[j]
		}
	}
}

// tridiagonalize returns a tridiagonal T and an orthogonal Qᵀ with A = Q·T·Qᵀ. T is given by
// its diagonal and by the entries beside the diagonal, to which a 0 is appended. Qᵀ is given by
// its rows. a is overwritten.
func tridiagonalize(ctx context.Context, a []float64, n int) (diagonal, beside []float64, q [][]float64, err error) {
	diagonal, beside = make([]float64, n), make([]float64, n)
	// twice[k] is 2 over the squared length of the vector of reflection k, or 0 if there is no
	// such reflection.
	twice := make([]float64, n)
	w := make([]float64, n)
	row := func(i int) []float64 { return a[i*n : (i+1)*n] }
	for k := range n - 1 {
		if err := ctx.Err(); err != nil {
			return nil, nil, nil, err
		}
		diagonal[k] = a[k*n+k]
		v := row(k)[k+1:]
		if kernel.Dot(v[1:], v[1:]) == 0 {
			beside[k] = v[0] // the column is already in tridiagonal form
			continue
		}
		length := math.Sqrt(kernel.Dot(v, v))
		if v[0] > 0 {
			length = -length
		}
		beside[k] = length
		v[0] -= length
		twice[k] = 2 / kernel.Dot(v, v)
		// The remaining block becomes A − v·wᵀ − w·vᵀ with p = β·A·v and w = p −
		// (β/2)(p·v)·v.
		for i := range v {
			w[i] = twice[k] * kernel.Dot(row(k + 1 + i)[k+1:], v)
		}
		p := w[:len(v)]
		kernel.Axpy(-0.5*twice[k]*kernel.Dot(p, v), v, p)
		for i := range v {
			rest := row(k + 1 + i)[k+1:]
			kernel.Axpy(-v[i], p, rest)
			kernel.Axpy(-p[i], v, rest)
		}
	}
	diagonal[n-1] = a[n*n-1]
	q = make([][]float64, n)
	for i := range q {
		q[i] = make([]float64, n)
		q[i][i] = 1
	}
	// Rows up to k are still rows of the identity, and reflection k does not change them.
	for k := n - 3; k >= 0; k-- {
		if err := ctx.Err(); err != nil {
			return nil, nil, nil, err
		}
		if twice[k] == 0 {
			continue
		}
		v := row(k)[k+1:]
		for _, r := range q[k+1:] {
			kernel.Axpy(-twice[k]*kernel.Dot(r[k+1:], v), v, r[k+1:])
		}
	}
	return diagonal, beside, q, nil
}

// maxSteps is the maximum number of QL steps for one eigenvalue. Usually two or three suffice.
const maxSteps = 100

// diagonalize overwrites the diagonal with the eigenvalues. It applies the same rotations to
// the rows of z.
func diagonalize(ctx context.Context, diagonal, beside []float64, z [][]float64) error {
	n := len(diagonal)
	for first := range n {
		if err := ctx.Err(); err != nil {
			return err
		}
		for step := 0; ; step++ {
			last := first // last row of the block that begins at first and does not decouple
			for last < n-1 && !negligible(beside[last], diagonal[last], diagonal[last+1]) {
				last++
			}
			if last == first {
				break
			}
			if step == maxSteps {
				return fmt.Errorf("eigenvalue %d of %d did not converge in %d steps", first, n, maxSteps)
			}
			qlStep(diagonal, beside, z, first, last)
		}
	}
	return nil
}

// negligible reports whether e, an entry beside the diagonal, is negligible against the
// diagonal entries a and b.
func negligible(e, a, b float64) bool {
	sum := math.Abs(a) + math.Abs(b)
	return sum+math.Abs(e) == sum
}

// qlStep does one implicit QL step on the block from first to last, by plane rotations from its
// last row upwards. bulge is the entry that the previous rotation created outside the three
// diagonals; the next rotation removes it by including it in corner.
func qlStep(diagonal, beside []float64, z [][]float64, first, last int) {
	g := (diagonal[first+1] - diagonal[first]) / (2 * beside[first])
	shift := diagonal[first] - beside[first]/(g+math.Copysign(length(g, 1), g))
	corner := diagonal[last] - shift
	sin, cos, moved := 1.0, 1.0, 0.0
	for i := last - 1; i >= first; i-- {
		bulge, kept := float64(sin*beside[i]), float64(cos*beside[i])
		r := length(bulge, corner)
		beside[i+1] = r
		if r == 0 {
			// The block decouples here.
			diagonal[i+1] -= moved
			beside[last] = 0
			return
		}
		sin, cos = bulge/r, corner/r
		g := diagonal[i+1] - moved
		t := float64((diagonal[i]-g)*sin) + float64(2*float64(cos*kept))
		moved = float64(sin * t)
		diagonal[i+1] = g + moved
		corner = float64(cos*t) - kept
		rotate(z[i], z[i+1], sin, cos)
	}
	diagonal[first] -= moved
	beside[first] = corner
	beside[last] = 0
}

// rotate applies a plane rotation to two rows.
func rotate(a, b []float64, sin, cos float64) {
	b = b[:len(a)]
	for j, x := range a {
		y := b[j]
		b[j] = float64(sin*x) + float64(cos*y)
		a[j] = float64(cos*x) - float64(sin*y)
	}
}

// length returns √(a²+b²), also where a² or b² exceeds or underflows float64.
func length(a, b float64) float64 {
	a, b = math.Abs(a), math.Abs(b)
	if a < b {
		a, b = b, a
	}
	if a == 0 {
		return 0
	}
	t := b / a
	return a * math.Sqrt(1+float64(t*t))
}
