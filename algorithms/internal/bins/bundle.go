package bins

import (
	"slices"
	"sort"
)

// bundler decides which sparse features share a column. Features may share a column if no row
// of the job stores two of them. This is checked over all rows, not over a sample, so bundling
// loses no information (it is the conflict-free case of exclusive feature bundling: Ke et al.,
// LightGBM, NIPS 2017). Two features conflict if some row stores both. A bit matrix has the
// pairs of features that conflict; an AllReduce combines the matrices of the subtasks by
// bitwise OR. The matrix grows with the square of the number of features, so it is computed for
// one window of features at a time. The features of a window are sorted by the number of rows
// that store them, largest first. Each feature is added to the first bundle that has room and
// contains no conflicting feature. This is greedy graph colouring.
type bundler struct {
	plan     *plan
	features []Feature
	missing  []int64 // for each feature, the number of rows in which it is missing
	parts    []packed
	rows     int64 // number of rows of the job

	stored     []int64 // for each feature, the number of rows that store it
	candidates []int   // indices of the features that may share a column
	next       int     // the first candidate of the window
	bundles    [][]int // features of each bundle; some have only one
}

const (
	// windowFeatures is the largest number of features in a window. The matrix of a window then
	// takes at most 2 MB.
	windowFeatures = 4096
	// openBundles is the largest number of bundles that are tried for a feature.
	openBundles = 256
	// A column takes one byte per row, and an entry of Sparse takes 4 bytes. So a column is
	// used if at least 1/denseShare of the rows store something in it.
	denseShare = 4
	// meetRows is the number of rows that meet reads at a time. They are called a chunk.
	meetRows = 1 << 10
)

func newBundler(p *plan, features []Feature, missing []int64, parts []packed, rows int64) bundler {
	b := bundler{plan: p, features: features, missing: missing, parts: parts, rows: rows}
	for i := range features {
		if f := &features[i]; p.kind == sparseRows {
			f.Implicit = f.Bins
			if p.options.AbsentIsZero {
				f.Implicit = f.Bin(0)
			}
		}
	}
	return b
}

func (b *bundler) countLength() int {
	if b.plan.kind != sparseRows {
		return 0
	}
	return len(b.features)
}

// count adds to out, for each feature, the number of the subtask's rows that store it.
func (b *bundler) count(out []int64) {
	for i := range out {
		f := &b.features[i]
		implicit := newImplicit(f)
		for k := range b.parts {
			_, _, values := b.parts[k].entries(int32(f.Number))
			for _, x := range values {
				if !implicit.has(x) {
					out[i]++
				}
			}
		}
	}
}

// splits reports whether feature i can split rows.
func (b *bundler) splits(i int) bool {
	f := &b.features[i]
	if f.Implicit >= 0 {
		return b.stored[i] > 0 && (b.stored[i] < b.rows || f.Bins > 1)
	}
	return f.Bins > 1 || f.Bins == 1 && b.missing[i] > 0
}

// wide reports whether the bins of feature i do not fit in a byte.
func (b *bundler) wide(i int) bool { return b.features[i].Bins > MaxBins }

// choose sets the candidates. sums has the results of count, summed over all subtasks.
func (b *bundler) choose(sums []int64) {
	if b.plan.kind != sparseRows {
		return
	}
	b.stored = slices.Clone(sums)
	for i := range b.features {
		switch {
		case !b.splits(i):
		case b.plan.options.NoBundling || b.stored[i] == b.rows || b.wide(i):
			b.bundles = append(b.bundles, []int{i})
		default:
			b.candidates = append(b.candidates, i)
		}
	}
}

// window returns the candidates of the current window.
func (b *bundler) window() []int {
	return b.candidates[b.next:min(b.next+windowFeatures, len(b.candidates))]
}

// words returns the number of words that a row of the matrix of n features takes.
func words(n int) int { return (n + 63) / 64 }

func (b *bundler) done() bool { return b.next >= len(b.candidates) }

// meetLength returns the length of the matrix of the window, in words.
func (b *bundler) meetLength() int { return len(b.window()) * words(len(b.window())) }

// meet sets in out the bit of each pair of features of which some row of the subtask stores
// both.
func (b *bundler) meet(out []int64) {
	if len(out) == 0 {
		return
	}
	window := b.window()
	width := words(len(window))
	rows := make([]uint64, meetRows*width) // for each row of the chunk, the bitset of the features that it stores
	var seen []uint64                      // (feature, row) pairs that the chunk stores
	for k := range b.parts {
		p := &b.parts[k]
		from := make([]int32, len(window)) // for each feature, the first entry after the chunk
		for lo := 0; lo < p.n; lo += meetRows {
			seen = b.storedIn(p, from, int32(min(lo+meetRows, p.n)), seen[:0])
			clear(rows)
			for _, w := range seen {
				i, row := int(w>>32), int(uint32(w))-lo
				rows[row*width+i/64] |= 1 << (i % 64)
			}
			for _, w := range seen {
				i, row := int(w>>32), int(uint32(w))-lo
				meets := out[i*width : (i+1)*width]
				for at, m := range rows[row*width : (row+1)*width] {
					meets[at] |= int64(m)
				}
			}
		}
	}
	for i := range window {
		out[i*width+i/64] &^= 1 << (i % 64) // a feature does not conflict with itself
	}
}

// storedIn appends to dst a word for each stored entry of a feature of the window in a row
// below hi, with the feature in the upper half and the row in the lower half. from[i] is the
// first entry of feature i that has not been read yet; storedIn advances it.
func (b *bundler) storedIn(p *packed, from []int32, hi int32, dst []uint64) []uint64 {
	for i, number := range b.window() {
		f := &b.features[number]
		implicit := newImplicit(f)
		_, rows, values := p.entries(int32(f.Number))
		at := from[i]
		for ; int(at) < len(rows) && rows[at] < hi; at++ {
			if !implicit.has(values[at]) {
				dst = append(dst, uint64(i)<<32|uint64(uint32(rows[at])))
			}
		}
		from[i] = at
	}
	return dst
}

// bundle assigns the features of the window to bundles and advances to the next window. matrix
// is the bitwise OR of the matrices of all subtasks.
func (b *bundler) bundle(matrix []int64) {
	window := b.window()
	width := words(len(window))
	order := make([]int, len(window))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(x, y int) bool { return b.stored[window[order[x]]] > b.stored[window[order[y]]] })
	type open struct {
		members []uint64
		room    int
		bundle  int
	}
	var all []open
	for _, i := range order {
		f := &b.features[window[i]]
		meets := matrix[i*width : (i+1)*width]
		fits := func(o *open) bool {
			if o.room < f.Bins {
				return false
			}
			for w, m := range o.members {
				if m&uint64(meets[w]) != 0 {
					return false
				}
			}
			return true
		}
		at := slices.IndexFunc(all, func(o open) bool { return fits(&o) })
		if at < 0 {
			at = len(all)
			if at == openBundles {
				copy(all, all[1:]) // the oldest bundle is not tried any more
				at--
				all = all[:at]
			}
			all = append(all, open{members: make([]uint64, width), room: 255, bundle: len(b.bundles)})
			b.bundles = append(b.bundles, nil)
		}
		o := &all[at]
		o.members[i/64] |= 1 << (i % 64)
		o.room -= f.Bins
		b.bundles[o.bundle] = append(b.bundles[o.bundle], window[i])
	}
	b.next += len(window)
}
