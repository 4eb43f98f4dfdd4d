package bins

import "math/bits"

// binner finds the bins of a feature's values quickly. It looks up a table by the leading bits
// of the difference between the key of the value and the key of the first cut. The entry of the
// table is the lowest bin of all keys with these leading bits. In most cases this is the bin of
// the value; otherwise the key is compared with the next few cuts.
type binner struct {
	feature *Feature
	keys    []uint32 // keys of the cuts, and then the largest uint32
	shift   uint     // number of low bits that the index of the table leaves out
	table   []uint8  // number of cuts that are at most the least key of the entry
	missing uint8
}

// The table has at most 2^tableBits entries. If it would have fewer than 2^leastBits, no table
// is made, as it would not pay. Cuts are dense where values are dense, so for most values the
// range of keys of the entry contains no cut.
const (
	tableBits = 16
	leastBits = 8
)

// newBinner returns a binner for a feature. values is roughly the number of values that will be
// binned. For few values, newBinner makes no table, as it would not pay.
func newBinner(f *Feature, values int) *binner {
	b := &binner{feature: f, missing: uint8(f.Bins)}
	most := min(tableBits, bits.Len(uint(values))-2)
	if f.Categorical || len(f.Cuts) == 0 || most < leastBits {
		return b
	}
	b.keys = make([]uint32, len(f.Cuts), len(f.Cuts)+1)
	for i, c := range f.Cuts {
		b.keys[i] = keyOf(c)
	}
	low := b.keys[0]
	span := b.keys[len(b.keys)-1] - low
	if n := bits.Len32(span); n > most {
		b.shift = uint(n - most)
	}
	b.table = make([]uint8, span>>b.shift+1)
	at := 0
	for i := range b.table {
		for at < len(b.keys) && b.keys[at] <= low+uint32(i)<<b.shift {
			at++
		}
		b.table[i] = uint8(at)
	}
	b.keys = append(b.keys, ^uint32(0))
	return b
}

// bin returns the bin of a value that Single returned.
func (b *binner) bin(x float32) uint8 {
	var one [1]byte
	b.fill(one[:], 1, []float32{x})
	return one[0]
}

// fill sets to[i*stride] to the bin of values[i], for each i.
func (b *binner) fill(to []byte, stride int, values []float32) {
	if len(values) == 0 {
		return
	}
	if b.keys == nil {
		for i, x := range values {
			to[i*stride] = uint8(b.feature.Bin(x))
		}
		return
	}
	keys, table, shift, low := b.keys, b.table, b.shift&31, b.keys[0]
	last := uint32(len(table) - 1)
	to = to[:(len(values)-1)*stride+1]
	at := 0
	for _, x := range values {
		n := b.missing
		if x == x {
			n = 0
			if k := keyOf(x); k >= low {
				n = table[min((k-low)>>shift, last)]
				for keys[n] <= k {
					n++
				}
			}
		}
		to[at] = n
		at += stride
	}
}
