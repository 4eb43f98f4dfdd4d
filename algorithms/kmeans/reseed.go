package kmeans

import "github.com/superstep-ml/superstep/comqueue"

// Clusters without weight are given the rows that are farthest from their own
// centre, as scikit-learn does: the farthest row to the lowest empty cluster, and
// so on. Rows of equal distance go by shard and then by place in it. The rows are
// found by two exact gathers: in each buffer a shard fills slots of its own and
// leaves zeros elsewhere, so that the sum over shards copies them. Where no
// cluster is empty the buffers have no length.

// farRow is a row far from its centre.
type farRow struct {
	shard, row int
	cost       float64 // what it adds to the objective per unit of weight
}

// farSize is the size of a slot for a farRow: the row's number plus 1, and the
// cost. A slot of zeros holds nothing.
const farSize = 2

// before orders rows, the farthest first.
func (r farRow) before(o farRow) bool {
	switch {
	case r.cost != o.cost:
		return r.cost > o.cost
	case r.shard != o.shard:
		return r.shard < o.shard
	}
	return r.row < o.row
}

// insert puts r in its place in an ordered list, and keeps the first n rows.
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

// findFarthest fills the shard's slots with as many of its farthest rows as there
// are empty clusters. Rows at their centre or without weight are no use.
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

// gatherReseeds fills the slots of chosen rows: d components, the weight, and
// the cluster the row is in.
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

// applyReseeds moves each chosen row, in the sums, from its cluster to an empty one. If the old
// cluster would be empty without the row, the row stays in its sums as well.
func (t lloyd) applyReseeds(w *lloydWork, rows, sums []float64) {
	d := len(w.next) / t.params.K
	for i := range w.chosen {
		x, weight, old := rows[i*(d+2):i*(d+2)+d], rows[i*(d+2)+d], int(rows[i*(d+2)+d+1])
		from, to := sums[old*(d+1):(old+1)*(d+1)], sums[w.empty[i]*(d+1):(w.empty[i]+1)*(d+1)]
		// The weight that is left must be more than a rounding error.
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
