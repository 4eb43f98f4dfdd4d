package bins

import "math/bits"

// binner finds the bins of a feature's values fast: a table, by the leading bits of the key
// above the first cut's, tells the bin in which such keys begin, and few cuts are left to
// look at.
type binner struct {
	feature *Feature
	keys    []uint32 // of the cuts
	low     uint32   // key of the first cut
	shift   uint     // bits of a key that the table does not look at
	table   []uint8  // by key, the number of cuts that are at most the least such key
	missing uint8
}

// tableBits is the size of the table.
const tableBits = 12

func newBinner(f *Feature) *binner {
	b := &binner{feature: f, missing: uint8(f.Bins)}
	if f.Categorical || len(f.Cuts) == 0 {
		return b
	}
	b.keys = make([]uint32, len(f.Cuts))
	for i, c := range f.Cuts {
		b.keys[i] = keyOf(c)
	}
	b.low = b.keys[0]
	span := b.keys[len(b.keys)-1] - b.low
	if n := bits.Len32(span); n > tableBits {
		b.shift = uint(n - tableBits)
	}
	b.table = make([]uint8, span>>b.shift+1)
	at := 0
	for i := range b.table {
		for at < len(b.keys) && b.keys[at] <= b.low+uint32(i)<<b.shift {
			at++
		}
		b.table[i] = uint8(at)
	}
	return b
}

// bin returns the bin of a value that Single gave.
func (b *binner) bin(x float32) uint8 {
	if x != x {
		return b.missing
	}
	if b.keys == nil {
		return uint8(b.feature.Bin(x))
	}
	k := keyOf(x)
	if k < b.low {
		return 0
	}
	i := (k - b.low) >> b.shift
	if int(i) >= len(b.table) {
		return uint8(len(b.keys))
	}
	n := int(b.table[i])
	for n < len(b.keys) && b.keys[n] <= k {
		n++
	}
	return uint8(n)
}

// fill writes the bins of values to to[0], to[stride], ….
func (b *binner) fill(to []byte, stride int, values []float32) {
	for i, x := range values {
		to[i*stride] = b.bin(x)
	}
}
