package kmeans

import "github.com/superstep-ml/superstep/internal/kernel"

// panels are centres laid out for the distances of one row to all of them: eight
// stand side by side, feature by feature, so that eight sums advance together.
type panels[T kernel.Float] struct {
	k, d   int
	values []T // centre 8p+l in feature j at values[(p*d+j)*8+l]
}

func newPanels[T kernel.Float](k, d int) *panels[T] {
	return &panels[T]{k: k, d: d, values: make([]T, (k+7)/8*8*d)}
}

func (s *panels[T]) set(centers []T) {
	for a := range s.k {
		panel := s.values[a/8*8*s.d:]
		for j, v := range centers[a*s.d : (a+1)*s.d] {
			panel[j*8+a%8] = v
		}
	}
}

// to writes the squared distances of x to the centres to out, each with the bits of
// squared.
func (s *panels[T]) to(x, out []T) {
	for a := 0; a < s.k; a += 8 {
		panel := s.values[a*s.d:]
		var a0, a1, a2, a3, a4, a5, a6, a7 T
		for _, v := range x[:s.d] {
			c := (*[8]T)(panel)
			panel = panel[8:]
			t0 := v - c[0]
			a0 += T(t0 * t0)
			t1 := v - c[1]
			a1 += T(t1 * t1)
			t2 := v - c[2]
			a2 += T(t2 * t2)
			t3 := v - c[3]
			a3 += T(t3 * t3)
			t4 := v - c[4]
			a4 += T(t4 * t4)
			t5 := v - c[5]
			a5 += T(t5 * t5)
			t6 := v - c[6]
			a6 += T(t6 * t6)
			t7 := v - c[7]
			a7 += T(t7 * t7)
		}
		sums := [8]T{a0, a1, a2, a3, a4, a5, a6, a7}
		copy(out[a:s.k], sums[:])
	}
}
