package forest

// Importances returns the share of each feature, by number, in the reduction of impurity. The
// share of a feature in a tree is the sum of the gains of the splits by the feature, divided by
// the sum of the gains of all splits. Importances averages the shares over the trees that have
// splits, so the results of all features sum to 1. If no tree has a split, all results are 0.
// This importance favours features with many values, and it describes the training rows, not
// new rows. Trees.Importances returns gains, covers and numbers of splits.
func (m *Model) Importances() []float64 {
	shares, own := make([]float64, m.Dim), make([]float64, m.Dim)
	splitting := 0.0
	for i := range m.Trees.Trees {
		nodes := m.Trees.Trees[i].Nodes
		clear(own)
		total := 0.0
		for j := range nodes {
			if n := &nodes[j]; !n.Leaf() {
				own[n.Feature] += n.Gain
				total += n.Gain
			}
		}
		if !(total > 0) {
			continue
		}
		splitting++
		for j, v := range own {
			shares[j] += v / total
		}
	}
	for j := range shares {
		if splitting > 0 {
			shares[j] /= splitting
		}
	}
	return shares
}
