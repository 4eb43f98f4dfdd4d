package tree

// Importance has statistics of the splits by one feature.
type Importance struct {
	// Feature is the name.
	Feature string
	// Splits is the number of nodes that look at the feature: XGBoost's weight, LightGBM's
	// split.
	Splits int64
	// TotalGain and TotalCover are the sums of the gains and covers of these nodes.
	TotalGain, TotalCover float64
}

// Gain returns the mean gain of the splits, 0 where there are none.
func (i Importance) Gain() float64 { return i.mean(i.TotalGain) }

// Cover returns the mean cover of the splits, 0 where there are none.
func (i Importance) Cover() float64 { return i.mean(i.TotalCover) }

func (i Importance) mean(total float64) float64 {
	if i.Splits == 0 {
		return 0
	}
	return total / float64(i.Splits)
}

// Importances returns the importances of all features in their order. Those of features that no
// node looks at are zero. Sums are in the order of trees and nodes. The weights of trees do not
// count, since gains are from training.
func (e *Ensemble) Importances() []Importance {
	all := make([]Importance, len(e.Features))
	for f, name := range e.Features {
		all[f].Feature = name
	}
	for t := range e.Trees {
		for i := range e.Trees[t].Nodes {
			n := &e.Trees[t].Nodes[i]
			if n.Leaf() {
				continue
			}
			f := &all[n.Feature]
			f.Splits++
			f.TotalGain += n.Gain
			f.TotalCover += n.Cover
		}
	}
	return all
}
