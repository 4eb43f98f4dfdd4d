package kernel

import "math"

// A filter finds the nearest centre of most rows by scores in single precision. Scores take a
// quarter of the time of distances. The filter reports the rows for which the scores do not
// decide.
//
// # Which rows are settled, and why
//
// For a row x, a centre c and any m, let y = x-m and z = c-m. The true squared distance is |y|²
// + 2s with the score s = |z|²/2 - y·z, so the nearest centre has the least score. With u =
// 2^-24, rounding y and z to single precision changes each component by a factor within
// 1±u(1+2^-28), whether the difference was computed in double or in single precision. Starting
// a sum at |z|²/2 and adding d products to it, in any order, fused or not, is wrong by at most
// (d+2)u/(1-(d+2)u) of the sum of the magnitudes. A score is therefore wrong by less than
//
//	E = (d+6)u·(|z|²/2 + |y||z|) ≤ (d+6)u·(|y|²/2 + Z²)
//
// for d up to 2^16, where Z is the largest |z|. The nearest centre is defined by the order of
// computed squared distances. Each of these is wrong by a factor within 1±e, where e is
// (d+2)·2^-53 or, for rows of float32, (d+3)u. The distances are below 2(|y|²+Z²). So suppose
// that the second least score exceeds the least by more than 2E + 2e(|y|²+Z²) <
// 4(d+6)u·(|y|²+Z²). Then the centre with the least score has the least computed distance, and
// no other centre has an equal computed distance. The code requires that the computed
// difference of the scores exceeds twice that bound, which covers the rounding of the
// difference, of the computed |y|² and of the bound.
//
// In addition, underflow makes each product and component wrong by at most 2^-149. If |y| or
// |z| is so large that such an error matters in a product, the margin, which is proportional to
// |y|²+Z², is far larger than the error. In all other cases the errors are below the least
// margin, 2^-100, which also covers squares that underflow in double precision. The filter is
// not used if Z² exceeds 2^120. A margin is computed from 16|y|², so if |y|² is above 2^124 or
// NaN, the margin is infinite or NaN, and no difference exceeds it. In all other cases no score
// and no distance overflows, in either precision.
type filter[T Float] struct {
	k, d   int
	width  int       // centres of a panel
	panels []float32 // panels[(p*d+j)*width+i] is feature j of centre p*width+i, minus the middle
	starts []float32 // half the squared norm of each centre; +Inf for padding
	middle []T       // m in the comment above; padded with zeros to a multiple of eight values
	scale  float32   // factor of 16|y|² in a margin
	base   float32   // constant term of a margin
	usable bool      // whether Z² of the centres is at most filterReach

	y     []float32 // y[j*filterRows+r] is the middle minus row r, in feature j
	norms [filterRows]float32
	near  [filterRows]int32
	todo  [filterRows]int32
}

const (
	// filterRows is the number of rows that a filter takes at a time.
	filterRows = 32
	// filterDimensions bounds d so that the error bounds hold.
	filterDimensions = 1 << 16
	// filterReach bounds Z².
	filterReach = 0x1p120
	// leastMargin covers underflow.
	leastMargin = 0x1p-100
)

// newFilter returns a filter for k centres in d dimensions.
func newFilter[T Float](k, d int) *filter[T] {
	f := &filter[T]{k: k, d: d, width: filterWidth(k)}
	padded := (k + f.width - 1) / f.width * f.width
	f.panels, f.starts = make([]float32, padded*d), make([]float32, padded)
	for i := range f.starts {
		f.starts[i] = float32(math.Inf(1))
	}
	wide := (d + 7) &^ 7
	f.middle, f.y = make([]T, wide), make([]float32, wide*filterRows)
	return f
}

// filterWidth returns the number of centres per panel for which k centres need the least
// padding; if several numbers need the same padding, it returns the largest.
func filterWidth(k int) (width int) {
	least := math.MaxInt
	for _, w := range [...]int{4, 6, 8, 10, 12} {
		if padded := (k + w - 1) / w * w; padded <= least {
			width, least = w, padded
		}
	}
	return width
}

// set computes the midpoint of the range of each feature over the centres, and the panels.
func (f *filter[T]) set(centers []T) {
	d := f.d
	for j := range d {
		low, high := centers[j], centers[j]
		for a := 1; a < f.k; a++ {
			low, high = min(low, centers[a*d+j]), max(high, centers[a*d+j])
		}
		f.middle[j] = T(low/2) + T(high/2)
	}
	var most float64
	for a := range f.k {
		panel := f.panels[a/f.width*f.width*d+a%f.width:]
		var norm float64
		for j, m := range f.middle[:d] {
			v := float32(centers[a*d+j] - m)
			norm += float64(float64(v) * float64(v))
			panel[j*f.width] = v
		}
		f.starts[a] = float32(norm / 2)
		if !(norm <= most) {
			most = norm // also if norm is NaN, which most then keeps
		}
	}
	scale := 8 * float64(d+6) * 0x1p-24
	f.scale, f.base = float32(scale/16), float32(float64(scale*most)+leastMargin)
	f.usable = most <= filterReach
}

// block scores the rows of x listed in todo, which lists at most filterRows rows. If bit r of
// the result is set, f.near[r] is the nearest centre of row todo[r].
func (f *filter[T]) block(x []T, todo []int32) uint32 {
	n := len(todo)
	if n < filterRows {
		copy(f.todo[:], todo)
		for r := n; r < filterRows; r++ {
			f.todo[r] = todo[n-1]
		}
		todo = f.todo[:]
	}
	rows := (n + 15) / 16
	for h := range rows {
		if is64[T]() {
			packRows64(of64(x), f.d, &todo[16*h], of64(f.middle), &f.y[16*h], &f.norms[16*h])
		} else {
			packRows32(of32(x), f.d, &todo[16*h], of32(f.middle), &f.y[16*h], &f.norms[16*h])
		}
	}
	y, panels, starts, norms, near := &f.y[0], &f.panels[0], &f.starts[0], &f.norms[0], &f.near[0]
	count := len(f.starts) / f.width
	switch f.width {
	case 4:
		return filter4(y, f.d, panels, starts, count, norms, f.scale, f.base, near)
	case 6:
		return filter6(y, f.d, panels, starts, count, norms, f.scale, f.base, near)
	case 8:
		return filter8(y, f.d, panels, starts, count, norms, f.scale, f.base, near)
	case 10:
		return filter10(y, f.d, panels, starts, count, norms, f.scale, f.base, near)
	default:
		return filter12(y, f.d, panels, starts, count, norms, f.scale, f.base, near)
	}
}
