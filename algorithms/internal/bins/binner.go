package bins

import "math/bits"

// binner finds the bins of a feature's values fast. A table is indexed by the leading bits of
// key − key of the first cut, and has the lowest bin of these keys. Most often that is the bin;
// else few cuts are left to compare.
type binner struct {
	feature *Feature
	keys    []uint32 // of the cuts, then one above all
	shift   uint     // low bits of a key that the index of the table leaves out
	table   []uint8  // number of cuts not above the least key of the entry
	missing uint8
}

// The largest size of the table, in bits, and the least that pays. Cuts are as dense as values,
// so most of the frequent entries have no cut inside.
const (
	tableBits = 16
	leastBits = 8
)

// newBinner makes the binner of a feature. values is about the number of values to bin: for few
// of them it makes no table.
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

// bin returns the bin of a value that Single gave.
func (b *binner) bin(x float32) uint8 {
	var one [1]byte
	b.fill(one[:], 1, []float32{x})
	return one[0]
}

// fill writes the bins of values to to[0], to[stride], ….
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
