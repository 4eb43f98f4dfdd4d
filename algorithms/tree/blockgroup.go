package tree

import "unsafe"

// Trees that are more than their tops, such as those of forests, are larger together than a
// processor's caches. So the rows of a group of blocks go down the tops of all trees first, and
// then through the rest of one tree after the other, which stays in the cache meanwhile.

// Bounds of a group: its blocks, and the bytes that the keys of its rows take.
const (
	groupBlocks = 16
	groupBytes  = 256 << 10
)

// blockGroup is the memory for a group of blocks.
type blockGroup[K key] struct {
	keys []K       // block after block
	sums []float64 // block after block
	ways []uint8   // tree after tree, of all rows
}

// groupSize returns the number of blocks of a group, 1 where groups save nothing.
func (l *layout[K]) groupSize() int {
	if !l.walks || len(l.tops) < 2 {
		return 1
	}
	return max(1, min(groupBlocks, groupBytes/(max(1, len(l.slots))*lanes*int(unsafe.Sizeof(K(0))))))
}

// scoreGroup scores a group of whole blocks by all trees. from is the first row, of which out and
// numbers, either of them nil, have the place that it has in the source.
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
