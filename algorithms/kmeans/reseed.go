package kmeans

import "github.com/superstep-ml/superstep/comqueue"

// Clusters without weight get the rows that are farthest from the centres to which they are
// assigned, as in scikit-learn: the empty cluster with the lowest number gets the farthest row,
// the next empty cluster the second farthest row, and so on. Rows at the same distance are
// ordered by shard and then by their position in the shard. The rows are found by two gathers,
// which are computed as sums over shards. Each shard writes only to its own slots of a buffer
// and leaves zeros elsewhere, so the sum contains the exact values of all slots. If no cluster
// is empty, the buffers have the length 0.

// farRow is a row that is far from its centre.
type farRow struct {
	shard, row int
	cost       float64 // what the row adds to the inertia per unit of weight
}

// farSize is the number of values in a slot for a farRow: the number of the row plus 1, and the
// cost. A slot of zeros is unused.
const farSize = 2

// before reports whether r is ordered before o. The farthest row is first.
func (r farRow) before(o farRow) bool {
	switch {
	case r.cost != o.cost:
		return r.cost > o.cost
	case r.shard != o.shard:
		return r.shard < o.shard
	}
	return r.row < o.row
}

// insert inserts r into an ordered list, and returns the first n rows of the result.
func insert(list []farRow, n int, r farRow) []farRow {
	if len(list) == n {
		if n == 0 || !r.before(list[n-1]) {
			return list
		}
		list = list[:n-1]
	}
	at := len(list)
	for at > 0 && r.before(list[at-1]) {
		at--
	}
	list = append(list, farRow{})
	copy(list[at+1:], list[at:])
	list[at] = r
	return list
}

// findFarthest writes the farthest rows of a shard to its slots, at most as many rows as there
// are empty clusters. Rows that equal their centre and rows without weight are not used.
func (t lloyd) findFarthest(ctx *comqueue.ComContext, shard int, out []float64) error {
	w := lloydScratch.Get(ctx)
	e := len(w.empty)
	if e == 0 {
		return nil
	}
	var far []farRow
	b, near := w.at(shard), w.near[shard-w.lo]
	for lo := 0; lo < b.n; lo += chunkRows {
		hi := min(lo+chunkRows, b.n)
		w.assign.costs(b, lo, hi, near, w.cost)
		for i, cost := range w.cost[:hi-lo] {
			if cost > 0 && b.weight(lo+i) > 0 {
				far = insert(far, e, farRow{shard, lo + i, cost})
			}
		}
	}
	slots := out[shard*e*farSize:]
	for i, r := range far {
		slots[i*farSize], slots[i*farSize+1] = float64(r.row+1), r.cost
	}
	return nil
}

// chooseReseeds picks the farthest rows of all shards.
func (t lloyd) chooseReseeds(ctx *comqueue.ComContext) error {
	w := lloydScratch.Get(ctx)
	e, d := len(w.empty), len(w.next)/t.params.K
	if e > 0 {
		slots := farthestRows.Get(ctx)
		for i := 0; i < len(slots); i += farSize {
			if slots[i] > 0 {
				w.chosen = insert(w.chosen, e, farRow{i / (e * farSize), int(slots[i]) - 1, slots[i+1]})
			}
		}
		if len(w.chosen) == 0 {
			return t.params.tooFewPoints(t.params.K-e, t.in.cosine)
		}
	}
	resize(ctx, reseedRows, len(w.chosen)*(d+2))
	return nil
}

// gatherReseeds writes the chosen rows of a shard to their slots. A slot has the d components
// of the row, its weight, and the cluster to which the row is assigned.
func (t lloyd) gatherReseeds(ctx *comqueue.ComContext, shard int, out []float64) error {
	w := lloydScratch.Get(ctx)
	d := len(w.next) / t.params.K
	for i, r := range w.chosen {
		if r.shard != shard {
			continue
		}
		slot := out[i*(d+2):]
		b := w.at(shard)
		b.expand(r.row, t.in.cosine, slot[:d])
		slot[d], slot[d+1] = b.weight(r.row), float64(w.near[shard-w.lo][r.row])
	}
	return nil
}

// applyReseeds changes the sums: it moves each chosen row from the sums of its cluster to the
// sums of an empty cluster. If the old cluster would be empty without the row, the row also
// stays in the sums of the old cluster.
func (t lloyd) applyReseeds(w *lloydWork, rows, sums []float64) {
	d := len(w.next) / t.params.K
	for i := range w.chosen {
		x, weight, old := rows[i*(d+2):i*(d+2)+d], rows[i*(d+2)+d], int(rows[i*(d+2)+d+1])
		from, to := sums[old*(d+1):(old+1)*(d+1)], sums[w.empty[i]*(d+1):(w.empty[i]+1)*(d+1)]
		// The remaining weight must be more than a rounding error.
		keep := !(from[d]-weight > 1e-12*from[d])
		for j, v := range x {
			v = float64(weight * v)
			to[j] = v
			if !keep {
				from[j] -= v
			}
		}
		to[d] = weight
		if !keep {
			from[d] -= weight
		}
	}
}
