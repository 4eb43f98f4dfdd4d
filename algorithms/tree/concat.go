package tree

import (
	"errors"
	"fmt"
	"slices"
)

// First returns the ensemble of the first n trees, all of them where there are fewer: with k
// trees a round, First(k*rounds) is what boosting had after so many rounds. The trees are
// shared, and so are all other parts.
func (e *Ensemble) First(n int) *Ensemble {
	first := *e
	n = min(max(n, 0), len(e.Trees))
	first.Trees = e.Trees[:n:n]
	return &first
}

// Concat returns the ensemble of all trees of several, in order. Where ensembles add, it gives
// the sum of what they give: their bases are added. Where they Average, it averages over all
// trees, and the bases must be equal. Features with their categories, Outputs, Average and
// Single must agree. The trees are shared.
func Concat(parts ...*Ensemble) (*Ensemble, error) {
	if len(parts) == 0 {
		return nil, errors.New("tree: no ensembles to concatenate")
	}
	all := *parts[0]
	all.Base = slices.Clone(all.Base)
	all.Trees = slices.Clone(all.Trees)
	for i, part := range parts[1:] {
		if d := head(&all, part, all.Average); d != "" {
			return nil, fmt.Errorf("tree: ensemble %d does not fit the first: %s", i+1, d)
		}
		all.Seen = AlsoSeen(all.Seen, part.Seen)
		if !all.Average {
			for o, b := range part.Base {
				all.Base[o] += b
			}
		}
		all.Trees = append(all.Trees, part.Trees...)
	}
	return &all, nil
}
