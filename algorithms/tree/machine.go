package tree

import "runtime"

// source has rows in one of several formats.
type source struct {
	x64    []float64
	x32    []float32
	stride int
	csr    CSR
	sparse bool
	absent Absent
}

// few is the least number of rows for which masks save more time than they cost.
const few = 12

// onStack is the largest number of slots for which the keys of a single row are stored on the
// stack instead of in an area.
const onStack = 256

// area is working memory for scoring a block of rows.
type area[K key] struct {
	keys  []K                      // keys of lanes rows for each slot, slot after slot
	masks []uint64                 // masks of the cuts
	held  []uint64                 // for each slot, the sparse rows with an entry for the feature
	sums  []float64                // sums of lanes rows for each output, output after output
	trees [together]int32          // current links of one row in several trees
	at    [lanes]int32             // current links of all rows in one tree
	way   [lanes]uint8             // paths of the rows through the top of that tree
	turns [maxTop]uint64           // for each level, the rows that go right
	reach [1 << maxTop >> 1]uint64 // rows that reach the nodes of a level
	group *blockGroup[K]           // nil before the first group
}

// take returns an area, which give makes available again.
func (l *layout[K]) take() *area[K] {
	select {
	case a := <-l.free:
		return a
	default:
		return &area[K]{
			keys:  make([]K, len(l.slots)*lanes),
			masks: make([]uint64, l.start[len(l.slots)]+1),
			held:  make([]uint64, len(l.slots)),
			sums:  make([]float64, l.e.Outputs*lanes),
		}
	}
}

func (l *layout[K]) give(a *area[K]) {
	select {
	case l.free <- a:
	default:
	}
}

// areas returns the largest number of unused areas that are kept.
func areas() int { return 2 * runtime.GOMAXPROCS(0) }

// one passes the first row of src through all trees. It writes the scores to out, or the
// numbers of the leaves to numbers. One of out and numbers must be nil.
func (l *layout[K]) one(src *source, out []float64, numbers []int32) {
	if len(l.slots) <= onStack {
		var keys [onStack]K
		var trees [together]int32
		l.row(src, 0, keys[:len(l.slots)], trees[:], out, numbers)
		return
	}
	a := l.take()
	l.row(src, 0, a.keys[:len(l.slots)], a.trees[:], out, numbers)
	l.give(a)
}

// row passes row i through the trees, several trees at a time.
func (l *layout[K]) row(src *source, i int, keys []K, trees []int32, out []float64, numbers []int32) {
	l.fill(src, i, keys, 1)
	if out != nil {
		l.begin(out)
	}
	for t := 0; t < len(l.tops); t += len(trees) {
		group := trees[:min(len(trees), len(l.tops)-t)]
		for j := range group {
			group[j] = l.tops[t+j].root
		}
		l.walkRow(keys, group)
		for j, at := range group {
			if out != nil {
				l.add(t+j, at, out, 1)
			}
			if numbers != nil {
				numbers[t+j] = l.numbers[at]
			}
		}
	}
	if out != nil {
		l.end(out)
	}
}

// begin sets the sums of a row to their initial values.
func (l *layout[K]) begin(sums []float64) {
	if l.e.Average {
		clear(sums[:l.e.Outputs])
		return
	}
	copy(sums, l.e.Base)
}

// add adds the values of tree t at the link at, where a row ends. The value for output o is
// added to sums[o*stride].
func (l *layout[K]) add(t int, at int32, sums []float64, stride int) {
	tree := &l.e.Trees[t]
	if tree.Values == nil {
		sums[int(tree.Output)*stride] += l.leaves[at]
		return
	}
	k := l.e.Outputs
	for o, v := range tree.Values[int(l.numbers[at])*k:][:k] {
		sums[o*stride] += float64(v * tree.Weight)
	}
}

// end replaces the sums of a row by its scores.
func (l *layout[K]) end(sums []float64) {
	if !l.e.Average {
		return
	}
	for o := range l.e.Base {
		sums[o] = l.mean(o, sums[o])
	}
}

// mean returns the score of output o for the sum over its trees, if the ensemble averages.
func (l *layout[K]) mean(o int, sum float64) float64 {
	if l.weights[o] > 0 {
		sum /= l.weights[o]
	}
	return l.e.Base[o] + sum
}

// rows does what one does, for each of the rows [from, to).
func (l *layout[K]) rows(src *source, from, to int, out []float64, numbers []int32) {
	k, trees := l.e.Outputs, len(l.tops)
	a := l.take()
	for n := 0; from < to; from += n {
		if blocks := min((to-from)/lanes, l.groupSize()); blocks > 1 {
			n = blocks * lanes
			l.scoreGroup(src, from, blocks, a, out, numbers)
			continue
		}
		n = min(to-from, lanes)
		var own []float64
		var ownNumbers []int32
		if out != nil {
			own = out[from*k : (from+n)*k]
		}
		if numbers != nil {
			ownNumbers = numbers[from*trees : (from+n)*trees]
		}
		if n >= few {
			l.block(src, from, n, a, own, ownNumbers)
			continue
		}
		for i := range n {
			var rowOut []float64
			var rowNumbers []int32
			if out != nil {
				rowOut = own[i*k : (i+1)*k]
			}
			if numbers != nil {
				rowNumbers = ownNumbers[i*trees : (i+1)*trees]
			}
			l.row(src, from+i, a.keys[:len(l.slots)], a.trees[:], rowOut, rowNumbers)
		}
	}
	l.give(a)
}

// block passes up to lanes rows through all trees, one tree after the other.
func (l *layout[K]) block(src *source, from, n int, a *area[K], out []float64, numbers []int32) {
	l.fillBlock(src, from, n, a)
	l.beginBlock(a.sums)
	for t := range l.tops {
		top := &l.tops[t]
		l.descend(top, a)
		if top.whole && l.e.Trees[t].Values == nil && numbers == nil {
			addWays((*[lanes]float64)(a.sums[int(l.e.Trees[t].Output)*lanes:]), (*[256]float64)(l.values[top.first:]), &a.way)
			continue
		}
		l.arrive(t, a.way[:n], a.keys, a.sums, a, out != nil, numbers)
	}
	if out != nil {
		l.endBlock(a.sums, n, out)
	}
}

// arrive moves rows of a block from the ends of their paths through the top of tree t to their
// leaves. If count is true, it adds the values of the leaves to sums. If numbers is not nil, it
// writes the numbers of the leaves to numbers.
func (l *layout[K]) arrive(t int, way []uint8, keys []K, sums []float64, a *area[K], count bool, numbers []int32) {
	top, at := &l.tops[t], a.at[:len(way)]
	ends := l.ends[top.first:][:1<<top.depth]
	for i, w := range way {
		at[i] = ends[w]
	}
	if !top.whole {
		l.walk(keys, at, top.sets)
	}
	if count {
		for i, leaf := range at {
			l.add(t, leaf, sums[i:], lanes)
		}
	}
	if numbers != nil {
		for i, leaf := range at {
			numbers[i*len(l.tops)+t] = l.numbers[leaf]
		}
	}
}

// beginBlock sets the sums of a block of rows to their initial values.
func (l *layout[K]) beginBlock(sums []float64) {
	for o, base := range l.e.Base {
		if l.e.Average {
			base = 0
		}
		own := sums[o*lanes:][:lanes]
		for i := range own {
			own[i] = base
		}
	}
}

// endBlock writes the scores of n rows of a block.
func (l *layout[K]) endBlock(sums []float64, n int, out []float64) {
	k := l.e.Outputs
	for o := range k {
		for i, sum := range sums[o*lanes:][:n] {
			if l.e.Average {
				sum = l.mean(o, sum)
			}
			out[i*k+o] = sum
		}
	}
}

// addWays adds to the sum of each row the value at the end of its path.
func addWays(sums *[lanes]float64, values *[256]float64, way *[lanes]uint8) {
	for i, w := range way {
		sums[i] += values[w]
	}
}
