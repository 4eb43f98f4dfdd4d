package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// leafShape draws rows at various offsets, of which two are the same slice, and their
// coefficients, mean and scale.
func leafShape(rng *rand.Rand, d, offset, style int) (rows [LeafCount][]float64, coef [LeafCount]float64, mean, scale []float64) {
	for i := range rows {
		rows[i] = mixed[float64](rng, d, (offset+3*i)%8, style)
	}
	rows[5] = rows[2]
	copy(coef[:], mixed[float64](rng, LeafCount, 0, style))
	return rows, coef, mixed[float64](rng, d, (offset+1)%8, style), mixed[float64](rng, d, (offset+5)%8, style)
}

func testLeaves(t require.TestingT, rng *rand.Rand, d, offset, style int) {
	rows, coef, mean, scale := leafShape(rng, d, offset, style)
	at := fmt.Sprintf("d=%d offset=%d style=%d", d, offset, style)
	compare(t, mixed[float64](rng, LeafCount, offset%3, 0), "dotLeaves "+at, func(f dispatch, out []float64) {
		dotLeaves(f, &rows, scale, (*[LeafCount]float64)(out))
	})
	out := mixed[float64](rng, d, offset%5, 0)
	compare(t, out, "foldLeaves "+at, func(f dispatch, out []float64) { foldLeaves(f, &rows, &coef, nil, scale, out) })
	compare(t, out, "foldLeaves centred "+at, func(f dispatch, out []float64) { foldLeaves(f, &rows, &coef, mean, scale, out) })
}

func TestLeafForms(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	for d := range 71 {
		for offset := range 8 {
			testLeaves(t, rng, d, offset, (d+offset)%3)
		}
	}
	testLeaves(t, rng, mostLeafFeatures+7, 3, 1)
	testLeaves(t, rng, 2*mostLeafFeatures, 1, 0)
}

func FuzzLeafForms(f *testing.F) {
	f.Add(uint64(1), uint8(28), uint8(3), uint8(1))
	f.Fuzz(func(t *testing.T, seed uint64, d, offset, style uint8) {
		testLeaves(t, rand.New(rand.NewPCG(seed, 2)), int(d), int(offset%8), int(style%3))
	})
}

// TestLeavesByTheirDefinition compares FoldLeaves with parts that are computed row by row, by
// Axpy and products, and added pairwise by AddTo.
func TestLeavesByTheirDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(53, 54))
	for _, d := range []int{1, 3, 28} {
		rows, coef, mean, scale := leafShape(rng, d, 1, 2)
		for _, mean := range [][]float64{nil, mean} {
			var parts [LeafCount][]float64
			for i, row := range rows {
				parts[i] = make([]float64, d)
				AddScaledRows(row, 1, d, coef[i:i+1], parts[i])
				if mean != nil {
					Axpy(-coef[i], mean, parts[i])
				}
				ProdTo(parts[i], scale)
			}
			for by := 1; by < LeafCount; by *= 2 {
				for i := 0; i < LeafCount; i += 2 * by {
					AddTo(parts[i], parts[i+by])
				}
			}
			got := make([]float64, d)
			FoldLeaves(&rows, &coef, mean, scale, got)
			require.Equal(t, parts[0], got)
		}
		var margins [LeafCount]float64
		DotLeaves(&rows, mean, &margins)
		for i, row := range rows {
			require.Equal(t, Dot(row, mean), margins[i])
		}
	}
}

func BenchmarkLeaves(b *testing.B) {
	rng := rand.New(rand.NewPCG(55, 56))
	const d = 28
	rows, coef, mean, scale := leafShape(rng, d, 0, 0)
	rows[5] = mixed[float64](rng, d, 0, 0)
	out := make([]float64, d)
	var margins [LeafCount]float64
	for _, form := range append([]dispatch{{}}, assembled...) {
		b.Run(fmt.Sprintf("dot/%+v", form), func(b *testing.B) {
			for b.Loop() {
				dotLeaves(form, &rows, scale, &margins)
			}
		})
		b.Run(fmt.Sprintf("fold/%+v", form), func(b *testing.B) {
			for b.Loop() {
				foldLeaves(form, &rows, &coef, mean, scale, out)
			}
		})
	}
}
