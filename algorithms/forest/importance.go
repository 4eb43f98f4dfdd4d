package forest

// Importances returns what share each feature has in making nodes purer, by its number: of
// each tree the gains of the splits by the feature over those of all its splits, averaged
// over the trees that split, so that the shares of all features sum to 1; 0 for all where no
// tree splits. It favours features of many values, and tells of training rows, not of new
// ones. Trees.Importances has gains, covers and numbers of splits.
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
