package forest

// Importances returns the share of each feature, by number, in the reduction of impurity. In a
// tree this is the sum of the gains of the splits by the feature, divided by that of all
// splits. It is averaged over the trees that have splits, so the shares of all features sum to
// 1. If no tree has a split, all are 0. It favours features of many values, and describes
// training rows, not new ones. Trees.Importances has gains, covers and numbers of splits.
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
