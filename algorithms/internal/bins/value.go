package bins

import "math"

// Single returns the float32 that a feature is binned as: rounded to nearest, +0 for −0, and
// the largest float32 for what is beyond it, the infinities too. Comparing a feature with a
// threshold below which one of these is, and not the others, gives the same whether it was
// clamped or not. NaN stays NaN.
func Single(x float64) float32 {
	y := float32(x) + 0
	if math.Float32bits(y)<<1 < 0xff<<24 {
		return y
	}
	return clamped(y)
}

// clamped is Single of an infinity or NaN.
func clamped(y float32) float32 {
	switch {
	case y > 0:
		return math.MaxFloat32
	case y < 0:
		return -math.MaxFloat32
	}
	return y
}

// Bin returns the bin of a value: NaN is missing, and so is, for a categorical feature, what
// is no code of a bin.
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
	return min(lo, f.Bins) // a feature that was always missing has no bin but that
}

// implicit tells which values are in a feature's implicit bin, which a look at two cuts tells
// of most features.
type implicit struct {
	feature *Feature
	lo, hi  float32 // values from lo up to but without hi
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

// has tells whether a value that Single gave is in the implicit bin.
func (b *implicit) has(x float32) bool {
	if b.ranged {
		return x >= b.lo && x < b.hi // NaN is not
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

// Bin returns the bin of a feature, by its number within Layout.Features, in a row. It is for
// tests and for what looks at few rows.
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
	case f.Slot < 0: // the same in all rows
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
