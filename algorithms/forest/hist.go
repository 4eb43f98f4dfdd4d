package forest

import (
	"math/bits"
	"slices"
)

// entry is a row on which a tree is grown.
type entry struct {
	row uint32
	w   uint32 // weight of the row times the number of its draws
	g   int64  // scaled.g of the row times the number of its draws; with more than two classes, the class
}

// pair is a slot of the histogram of a regression.
type pair struct{ g, w int64 }

// present is a bin that occurs in a node, with the sums of its rows.
type present struct {
	bin int
	sums
}

// histogram has the sums over the rows of a node for each bin of one feature. All slots are
// zero between uses.
type histogram struct {
	// narrow means that there are two classes and that sums of weights fit 32 bits. A slot is
	// then g·2^32 + w.
	narrow bool
	packed [256]uint64
	pairs  [256]pair
	// counts is used with more than two classes. It has a row of len(total) weights for each
	// bin: the weight of each class that occurs in the node.
	counts []int64
	// countRows means that rows are counted, too.
	countRows bool
	rows      [256]uint32
	// many has the slots of a column with bins of two bytes, and seen marks the bins that
	// occur.
	many []sums
	seen []uint16
	// bins is the largest number of bins of a feature, including the bin of missing values, but
	// at least 256.
	bins int

	// local maps the classes that occur in the node to the numbers 0, 1 and so on, in ascending
	// order. total has the weights of these classes.
	local []int32
	total []int64
	in    []int32

	// list has the bins that occur, in ascending order, except the bin of missing values, whose
	// sums are in absent.
	list   []present
	absent sums
}

// In a node of fewer than few rows, the bins that occur are marked while rows are added, so
// that fill does not have to look at 256 slots.
const few = 192

// fill adds the entries of a node to the bins of a column, and sets list to the bins that
// occur. Afterwards all slots are zero again, except those of counts, which clear resets.
func (h *histogram) fill(c *column, e []entry) {
	if c.wide != nil {
		h.fillWide(c, e)
		return
	}
	var seen [4]uint64
	noting := len(e) < few
	col, stride, decode := c.bins, c.stride, c.decode
	switch {
	case h.total != nil:
		h.fillCounts(c, e)
	case h.narrow:
		for i := range e {
			b := decode[col[int(e[i].row)*stride]]
			h.packed[b] += uint64(e[i].g)<<32 + uint64(e[i].w)
		}
	default:
		for i := range e {
			s := &h.pairs[decode[col[int(e[i].row)*stride]]]
			s.g += e[i].g
			s.w += int64(e[i].w)
		}
	}
	if h.countRows {
		for i := range e {
			h.rows[decode[col[int(e[i].row)*stride]]]++
		}
	}
	if noting {
		for i := range e {
			b := decode[col[int(e[i].row)*stride]]
			seen[b>>6] |= 1 << (b & 63)
		}
	} else {
		seen = [4]uint64{^uint64(0), ^uint64(0), ^uint64(0), ^uint64(0)}
	}
	h.collect(c.missing, &seen)
}

// fillCounts adds the weights of the entries to counts.
func (h *histogram) fillCounts(c *column, e []entry) {
	k := len(h.total)
	for i := range e {
		b := int(c.decode[c.bins[int(e[i].row)*c.stride]])
		h.counts[b*k+int(h.local[e[i].g])] += int64(e[i].w)
	}
}

// fillWide does what fill does, for a column with bins of two bytes. Most of these bins may not
// occur in the node.
func (h *histogram) fillWide(c *column, e []entry) {
	if len(h.many) < h.bins {
		h.many = make([]sums, h.bins)
	}
	h.seen = h.seen[:0]
	for i := range e {
		b := c.wide[e[i].row]
		s := &h.many[b]
		if s.n == 0 {
			h.seen = append(h.seen, b)
		}
		s.n++
		s.w += int64(e[i].w)
		if h.total == nil {
			s.g += e[i].g
		} else {
			h.bin(int(b))[h.local[e[i].g]] += int64(e[i].w)
		}
	}
	slices.Sort(h.seen)
	h.list, h.absent = h.list[:0], sums{}
	for _, b := range h.seen {
		s := h.many[b]
		h.many[b] = sums{}
		switch {
		case s.w == 0:
		case int(b) == c.missing:
			h.absent = s
		default:
			h.list = append(h.list, present{int(b), s})
		}
	}
}

// collect sets list to the bins that occur, which seen marks.
func (h *histogram) collect(missing int, seen *[4]uint64) {
	h.list, h.absent = h.list[:0], sums{}
	for word, set := range seen {
		for ; set != 0; set &= set - 1 {
			b := word<<6 + bits.TrailingZeros64(set)
			if b > missing {
				return
			}
			s := h.take(b)
			switch {
			case s.w == 0:
			case b == missing:
				h.absent = s
			default:
				h.list = append(h.list, present{b, s})
			}
		}
	}
}

// take returns the sums of bin b and sets its slots to zero, except those of counts.
func (h *histogram) take(b int) (s sums) {
	if h.countRows {
		s.n = int(h.rows[b])
		h.rows[b] = 0
	}
	switch {
	case h.total != nil:
		for _, c := range h.bin(b) {
			s.w += c
		}
	case h.narrow:
		v := h.packed[b]
		h.packed[b] = 0
		s.g, s.w = int64(v>>32), int64(v&(1<<32-1))
	default:
		s.g, s.w = h.pairs[b].g, h.pairs[b].w
		h.pairs[b] = pair{}
	}
	return s
}

// bin returns the weights in bin b of the classes that occur in the node.
func (h *histogram) bin(b int) []int64 {
	k := len(h.total)
	return h.counts[b*k : (b+1)*k]
}

// clear sets the slots of counts to zero.
func (h *histogram) clear(missing int) {
	if h.total == nil {
		return
	}
	for _, p := range h.list {
		clear(h.bin(p.bin))
	}
	if h.absent.w > 0 {
		clear(h.bin(missing))
	}
}

// open prepares the histogram for a node if there are more than two classes: it numbers the
// classes that occur.
func (h *histogram) open(e []entry, classes int) {
	h.begin(classes)
	for i := range e {
		if k := e[i].g; h.local[k] == 0 {
			h.local[k] = 1
			h.in = append(h.in, int32(k))
		}
	}
	slices.Sort(h.in)
	h.number()
	for i := range e {
		h.total[h.local[e[i].g]] += int64(e[i].w)
	}
}

// openCounts does what open does, for a node whose weights of classes are already known.
func (h *histogram) openCounts(counts []int64) {
	h.begin(len(counts))
	for k, w := range counts {
		if w > 0 {
			h.in = append(h.in, int32(k))
		}
	}
	h.number()
	for i, k := range h.in {
		h.total[i] = counts[k]
	}
}

func (h *histogram) begin(classes int) {
	if h.local == nil {
		h.local, h.total = make([]int32, classes), []int64{}
	}
	for _, k := range h.in {
		h.local[k] = 0
	}
	h.in, h.total = h.in[:0], h.total[:0]
}

// number numbers the classes that occur, and provides slots in counts for them.
func (h *histogram) number() {
	for i, k := range h.in {
		h.local[k] = int32(i)
		h.total = append(h.total, 0)
	}
	if need := h.bins * len(h.total); cap(h.counts) < need {
		h.counts = make([]int64, need)
	} else {
		h.counts = h.counts[:need]
	}
}

// load sets list to the bins that occur, as fill does, but from sums that were already added
// up. For each bin, the slice from has the number of rows, and then g and w or, with more than
// two classes, the weight of each class. The last bin is the bin of missing values.
func (h *histogram) load(missing, classes int, from []int64) {
	h.list, h.absent = h.list[:0], sums{}
	width := loadWidth(classes)
	for b := range missing + 1 {
		own := from[b*width : (b+1)*width]
		s := sums{n: int(own[0])}
		if s.n == 0 {
			continue
		}
		if classes > 2 {
			to := h.bin(b)
			for i, k := range h.in {
				to[i] = own[1+k]
				s.w += own[1+k]
			}
		} else {
			s.g, s.w = own[1], own[2]
		}
		if b == missing {
			h.absent = s
		} else {
			h.list = append(h.list, present{b, s})
		}
	}
}

// loadWidth returns how many integers load reads for each bin.
func loadWidth(classes int) int {
	if classes > 2 {
		return 1 + classes
	}
	return 3
}
