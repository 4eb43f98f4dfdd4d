package bins

import "math"

// Single returns the float32 by which a feature value is binned: x rounded to nearest, with +0
// for −0. Infinities and values beyond the range of float32 are clamped to the largest float32
// of their sign. Every threshold is above −math.MaxFloat32 and at most math.MaxFloat32, so
// clamping does not change the result of comparisons with thresholds. NaN stays NaN.
func Single(x float64) float32 {
	y := float32(x) + 0
	if math.Float32bits(y)<<1 < 0xff<<24 {
		return y
	}
	return clamped(y)
}

// clamped returns the result of Single if y, the converted value, is infinite or NaN.
func clamped(y float32) float32 {
	switch {
	case y > 0:
		return math.MaxFloat32
	case y < 0:
		return -math.MaxFloat32
	}
	return y
}

// Bin returns the bin of a value that Single returned. NaN is missing. For a categorical
// feature, a value that is not the code of a category with a bin is missing too.
func (f *Feature) Bin(x float32) int {
	if x != x {
		return f.Bins
	}
	if f.Categorical {
		return f.categoryBin(x)
	}
	lo, hi := 0, len(f.Cuts)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if f.Cuts[mid] <= x {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return min(lo, f.Bins) // if the feature is missing in every training row, Bins is 0
}

// implicit tests whether values are in a feature's implicit bin. If that bin is a range of
// numbers, the test takes two comparisons.
type implicit struct {
	feature *Feature
	lo, hi  float32 // the implicit bin has the values v with lo ≤ v < hi
	ranged  bool
}

func newImplicit(f *Feature) implicit {
	b := implicit{feature: f, lo: float32(math.Inf(-1)), hi: float32(math.Inf(1))}
	b.ranged = !f.Categorical && f.Implicit >= 0 && f.Implicit < f.Bins
	if b.ranged && f.Implicit > 0 {
		b.lo = f.Cuts[f.Implicit-1]
	}
	if b.ranged && f.Implicit < len(f.Cuts) {
		b.hi = f.Cuts[f.Implicit]
	}
	return b
}

// has reports whether a value that Single returned is in the implicit bin.
func (b *implicit) has(x float32) bool {
	if b.ranged {
		return x >= b.lo && x < b.hi // false for NaN
	}
	return b.feature.Bin(x) == b.feature.Implicit
}

func (f *Feature) categoryBin(x float32) int {
	if !(x >= 0 && x <= MaxCategory) || x != float32(int32(x)) {
		return f.Bins
	}
	code := int32(x)
	lo, hi := 0, len(f.Codes)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if f.Codes[mid] < code {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(f.Codes) && f.Codes[lo] == code {
		return lo
	}
	return f.Bins
}

// Bin returns the bin of a feature in a row. feature is its index in Layout.Features. Bin is
// slow: it is meant for tests and for few rows.
func (d *Data) Bin(row, feature int) int {
	f := &d.Layout.Features[feature]
	if wide := d.Layout.WideColumn(feature); wide >= 0 {
		return int(d.Wide[wide][row])
	}
	switch {
	case f.Column >= 0:
		c := &d.Layout.Columns[f.Column]
		b := &d.Blocks[c.Block]
		slot := c.Slot + int(b.Bins[row*b.Stride+c.Offset])
		if slot < f.Slot || slot >= f.Slot+f.Stored() {
			return f.Implicit
		}
		return f.BinOfSlot(slot)
	case f.Slot < 0: // not stored, since all rows have the same bin
		return max(f.Implicit, 0)
	}
	lo, hi := d.Sparse.RowPtr[row], d.Sparse.RowPtr[row+1]
	for lo < hi {
		mid := (lo + hi) / 2
		if int(d.Sparse.Slots[mid]) < f.Slot {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < d.Sparse.RowPtr[row+1] && int(d.Sparse.Slots[lo]) < f.Slot+f.Stored() {
		return f.BinOfSlot(int(d.Sparse.Slots[lo]))
	}
	return f.Implicit
}
