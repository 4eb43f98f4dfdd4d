package tree

import "unsafe"

// Ensembles whose trees have nodes below their tops, such as forests, are larger than a
// processor's caches. So all rows of a group of blocks first pass through the tops of all
// trees. Then they pass through the rest of one tree after the other, so that the nodes of a
// tree stay in the cache while all rows use them.

// groupBlocks and groupBytes limit a group: the number of its blocks, and the number of bytes
// of the keys of its rows.
const (
	groupBlocks = 16
	groupBytes  = 256 << 10
)

// blockGroup is working memory for a group of blocks.
type blockGroup[K key] struct {
	keys []K       // the keys of the rows, block after block
	sums []float64 // the sums of the rows, block after block
	ways []uint8   // for one tree after the other, the path of each row through the top
}

// groupSize returns the number of blocks in a group. It returns 1 if groups save no time.
func (l *layout[K]) groupSize() int {
	if !l.walks || len(l.tops) < 2 {
		return 1
	}
	return max(1, min(groupBlocks, groupBytes/(max(1, len(l.slots))*lanes*int(unsafe.Sizeof(K(0))))))
}

// scoreGroup computes the scores of a group of whole blocks, or the nodes in which their rows
// end. from is the index of the group's first row in src, out and numbers. One of out and
// numbers may be nil.
func (l *layout[K]) scoreGroup(src *source, from, blocks int, a *area[K], out []float64, numbers []int32) {
	if a.group == nil {
		size := l.groupSize()
		a.group = &blockGroup[K]{
			keys: make([]K, size*len(l.slots)*lanes), sums: make([]float64, size*l.e.Outputs*lanes),
			ways: make([]uint8, len(l.tops)*size*lanes),
		}
	}
	h, slots, k, trees := a.group, len(l.slots)*lanes, l.e.Outputs, len(l.tops)
	keys := a.keys
	for b := range blocks {
		a.keys = h.keys[b*slots:][:slots]
		l.fillBlock(src, from+b*lanes, lanes, a)
		l.beginBlock(h.sums[b*k*lanes:][:k*lanes])
		for t := range l.tops {
			l.descend(&l.tops[t], a)
			copy(h.ways[(t*blocks+b)*lanes:][:lanes], a.way[:])
		}
	}
	a.keys = keys
	for t := range l.tops {
		for b := range blocks {
			first := from + b*lanes
			var own []int32
			if numbers != nil {
				own = numbers[first*trees:][:lanes*trees]
			}
			l.arrive(t, h.ways[(t*blocks+b)*lanes:][:lanes], h.keys[b*slots:][:slots], h.sums[b*k*lanes:][:k*lanes], a, out != nil, own)
		}
	}
	if out == nil {
		return
	}
	for b := range blocks {
		l.endBlock(h.sums[b*k*lanes:][:k*lanes], lanes, out[(from+b*lanes)*k:][:lanes*k])
	}
}
