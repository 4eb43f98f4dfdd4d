package tree

// fill writes the keys of row i of src. The key of slot s is written to keys[s*width].
func (l *layout[K]) fill(src *source, i int, keys []K, width int) {
	switch {
	case src.sparse:
		l.fillSparse(src, i, keys, width)
	case src.x64 != nil:
		x := src.x64[i*src.stride:]
		for s, slot := range l.slots {
			fillKeys(slot, x[slot.feature:], 0, keys[s*width:][:1])
		}
	default:
		x := src.x32[i*src.stride:]
		for s, slot := range l.slots {
			fillKeys(slot, x[slot.feature:], 0, keys[s*width:][:1])
		}
	}
}

// fillSparse does what fill does, for a sparse row.
func (l *layout[K]) fillSparse(src *source, i int, keys []K, width int) {
	for s, k := range l.absent[src.absent] {
		keys[s*width] = k
	}
	from, to := src.csr.RowPtr[i], src.csr.RowPtr[i+1]
	for p, f := range src.csr.Col[from:to] {
		if f < 0 || int(f) >= len(l.first)-1 {
			continue
		}
		for s := l.first[f]; s < l.first[f+1]; s++ {
			keys[int(s)*width] = l.keyAt(s, src.csr.Val[int(from)+p])
		}
	}
}

// keyAt returns the key of a value in a slot.
func (l *layout[K]) keyAt(s int32, x float64) (k K) {
	var one [1]K
	fillKeys(l.slots[s], []float64{x}, 0, one[:])
	return one[0]
}

// fillBlock computes the keys and masks of a block of n rows.
func (l *layout[K]) fillBlock(src *source, from, n int, a *area[K]) {
	switch {
	case len(l.slots) == 0: // every tree is a single leaf
		return
	case src.sparse:
		l.fillSparseBlock(src, from, n, a)
		return
	case src.x64 != nil:
		x := src.x64[from*src.stride:]
		for s, slot := range l.slots {
			fillKeys(slot, x[slot.feature:], src.stride, a.keys[s*lanes:][:n])
		}
	default:
		x := src.x32[from*src.stride:]
		for s, slot := range l.slots {
			fillKeys(slot, x[slot.feature:], src.stride, a.keys[s*lanes:][:n])
		}
	}
	l.fillMasks(a.keys, n, a)
}

// fillSparseBlock does what fillBlock does, for sparse rows. Its time is in proportion to the
// number of entries, because all rows without an entry for a feature have the same key, whose
// rank was computed before.
func (l *layout[K]) fillSparseBlock(src *source, from, n int, a *area[K]) {
	clear(a.masks)
	clear(a.held)
	for s, k := range l.absent[src.absent] {
		if !l.walks && l.cuts[s].sets == nil { // the key is not used
			continue
		}
		keys := a.keys[s*lanes:][:n]
		for i := range keys {
			keys[i] = k
		}
	}
	for i := range n {
		first, end := src.csr.RowPtr[from+i], src.csr.RowPtr[from+i+1]
		values := src.csr.Val[first:end]
		for p, f := range src.csr.Col[first:end] {
			if f < 0 || int(f) >= len(l.first)-1 {
				continue
			}
			for s := l.first[f]; s < l.first[f+1]; s++ {
				k := l.keyAt(s, values[p])
				a.keys[int(s)*lanes+i] = k
				l.hold(s, i, k, a)
			}
		}
	}
	for s := range l.slots {
		own := a.masks[l.start[s]:l.start[s+1]]
		if sets := l.cuts[s].sets; sets != nil {
			l.fillSets(sets, a.keys[s*lanes:][:n], own[1:])
			continue
		}
		own[l.absentRank[src.absent][s]] |= ^a.held[s]
		fold(own)
	}
}

// hold sets the bit of row i in the mask of slot s that belongs to key k. If the row had
// another key in this slot, hold replaces that key.
func (l *layout[K]) hold(s int32, i int, k K, a *area[K]) {
	own := a.masks[l.start[s]:l.start[s+1]]
	row := uint64(1) << i
	if a.held[s]&row != 0 {
		for c := range own {
			own[c] &^= row
		}
	}
	a.held[s] |= row
	own[l.cuts[s].rank(k)] |= row
}
