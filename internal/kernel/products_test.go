package kernel

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProductsEqualDefinition compares the products of matrices with the loops that define
// them.
func TestProductsEqualDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for _, d := range []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 13, 17, 33, 67} {
		for _, n := range []int{0, 1, 3, 4, 5, 11, 66} {
			for _, k := range []int{1, 2, 3, 4, 5, 8, 9, 17} {
				x, _, h := matrix[float64](rng, n, d, (n+d)%8)
				rows, _, _ := matrix[float64](rng, k, d, k%3)
				coef, _, _ := matrix[float64](rng, n, k, d%3)
				w := NewPacked(k, d)
				w.Set(rows)
				require.Equal(t, []int{k, d}, []int{w.K(), w.D()})
				want, got := make([]float64, n*k), make([]float64, n*k)
				for i := range n {
					for c := range k {
						want[i*k+c] = Dot(x[i*d:i*d+d], rows[c*d:c*d+d])
					}
				}
				MulRows(x, n, w, got)
				requireBits(t, want, got, n, d, k)

				outer, sums := fill(rng, make([]float64, k*d), 2), make([]float64, k*d)
				copy(sums, outer)
				for i := range n {
					for c := range k {
						for j := range d {
							outer[c*d+j] += float64(coef[i*k+c] * x[i*d+j])
						}
					}
				}
				AddOuterRows(x, n, d, coef, k, sums)
				requireBits(t, outer, sums, n, d, k)

				if k > 2 {
					continue
				}
				if k == 2 {
					h = nil
				}
				gram, sum := fill(rng, make([]float64, d*(d+1)/2), 2), make([]float64, d*(d+1)/2)
				copy(sum, gram)
				for i := range n {
					weight := 1.0
					if h != nil {
						weight = h[i]
					}
					for a := range d {
						for b := range a + 1 {
							gram[a*(a+1)/2+b] += float64(float64(weight*x[i*d+a]) * x[i*d+b])
						}
					}
				}
				new(Gram).AddRows(x, n, d, h, sum)
				requireBits(t, gram, sum, n, d)
			}
		}
	}
}

// TestSparseProductsEqualDefinition compares the products of sparse rows, some of them empty,
// with the loops that define them.
func TestSparseProductsEqualDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 34))
	for _, d := range []int{1, 2, 9, 100} {
		for n := range 14 {
			x := CSR{RowPtr: []int64{0}}
			for range n {
				for j := range d {
					if rng.IntN(3) == 0 {
						x.Col = append(x.Col, int32(j))
						x.Val = append(x.Val, hostile(rng, 2))
					}
				}
				x.RowPtr = append(x.RowPtr, int64(len(x.Val)))
			}
			w, coef := fill(rng, make([]float64, d), 2), fill(rng, make([]float64, n), 2)
			dots, sum := make([]float64, n), append([]float64(nil), w...)
			for i := range n {
				for p := x.RowPtr[i]; p < x.RowPtr[i+1]; p++ {
					j, v := x.Col[p], x.Val[p]
					dots[i] += float64(v * w[j])
					sum[j] += float64(coef[i] * v)
				}
			}
			got := make([]float64, n)
			DotCSR(x, w, got)
			requireBits(t, dots, got)
			to := append([]float64(nil), w...)
			AddScaledCSR(x, coef, to)
			requireBits(t, sum, to)
		}
	}
	DotCSR(CSR{}, nil, nil)
	AddScaledCSR(CSR{}, nil, nil)
}
