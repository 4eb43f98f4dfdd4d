package gbdt

import (
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/tree"
)

// Leaves writes to dst, for each tree, the number of the node in which the row ends. It returns
// false, and leaves dst unchanged, if the row does not have Dim features or dst does not have
// one element for each tree.
func (m *Model) Leaves(row []float64, dst []int32) bool {
	r := m.take()
	defer m.give(r)
	if !m.load(signature.Dense(row), r.x) || len(dst) != len(m.Ensemble.Trees) {
		return false
	}
	m.scorer.Leaves(r.x, dst)
	return true
}

// Contributions returns the number of values that Contribute writes. For each output this is
// one value for each feature of the ensemble and one for the expected margin.
func (m *Model) Contributions() int { return m.Ensemble.Outputs * (len(m.Ensemble.Features) + 1) }

// Contribute writes to dst the contribution of each feature of a row to its margins: the
// Shapley values that tree.Explainer defines, output by output. After the values of an output
// follows its expected margin, which is the margin of a row whose features are all unknown. The
// contributions and the expected margin add up to the margin, up to rounding. Contribute
// returns false, and leaves dst unchanged, if the row does not have Dim features or dst does
// not have Contributions values. It does not allocate, except in the first calls.
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

// explain returns the explainer of predictions, which the first call makes. It returns an error
// if the trees cannot be explained.
func (m *Model) explain() (*tree.Explainer, error) {
	m.explaining.Do(func() { m.explainer, m.unexplained = m.Ensemble.Explainer(tree.ExplainOptions{}) })
	return m.explainer, m.unexplained
}
