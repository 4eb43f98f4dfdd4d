package gbdt

import "github.com/superstep-ml/superstep/algorithms/model"

// Leaves writes to dst, for each tree, the number of the node in which a row ends. A row that
// has not Dim features, or a dst of another length, is left, and gives false.
func (m *Model) Leaves(row []float64, dst []int32) bool {
	r := m.take()
	defer m.give(r)
	if !m.load(row, r.x) || len(dst) != len(m.Ensemble.Trees) {
		return false
	}
	m.scorer.Leaves(r.x, dst)
	return true
}

// writeFurther writes the columns that predictions may have besides.
func (m *Model) writeFurther(row []model.Cell, at *places, r *room) {
	if at.margin >= 0 {
		copy(row[at.margin].MakeDense(len(r.margins)), r.margins)
	}
	if at.leaf >= 0 {
		r.leaves = grown(r.leaves, len(m.Ensemble.Trees))
		m.scorer.Leaves(r.x, r.leaves)
		dst := row[at.leaf].MakeDense(len(r.leaves))
		for i, n := range r.leaves {
			dst[i] = float64(n)
		}
	}
}
