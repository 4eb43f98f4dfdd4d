package gbdt

import (
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// Leaves writes to dst, for each tree, the number of the node in which a row ends. A row that
// has not Dim features, or a dst of another length, is left, and gives false.
func (m *Model) Leaves(row []float64, dst []int32) bool {
	r := m.take()
	defer m.give(r)
	if !m.load(signature.Dense(row), r.x) || len(dst) != len(m.Ensemble.Trees) {
		return false
	}
	m.scorer.Leaves(r.x, dst)
	return true
}

// Contributions is the number of values that Contribute writes: for each output one for each
// feature of the ensemble and one for what is expected of a row that nothing is known of.
func (m *Model) Contributions() int { return m.Ensemble.Outputs * (len(m.Ensemble.Features) + 1) }

// Contribute writes to dst what each feature of a row adds to its margins: the Shapley values
// that tree.Explainer defines, output by output, behind those of an output what is expected
// of a row that nothing is known of. They add up to the margins, but for rounding. A row that
// has not Dim features, or a dst of another length than Contributions, is left, and gives
// false. It allocates nothing, the first calls excepted.
func (m *Model) Contribute(row, dst []float64) bool {
	r := m.take()
	defer m.give(r)
	x, err := m.explain()
	if err != nil || !m.load(signature.Dense(row), r.x) || len(dst) != m.Contributions() {
		return false
	}
	x.Values(r.x, dst)
	return true
}

// explain returns what explains predictions, which is made once. The error is about trees
// that cannot be explained.
func (m *Model) explain() (*tree.Explainer, error) {
	m.explaining.Do(func() { m.explainer, m.unexplained = m.Ensemble.Explainer(tree.ExplainOptions{}) })
	return m.explainer, m.unexplained
}
