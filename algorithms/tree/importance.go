package tree

// Importance is what the splits of an ensemble say of one feature.
type Importance struct {
	// Feature is the name.
	Feature string
	// Splits is the number of nodes that look at the feature: XGBoost's weight, LightGBM's
	// split.
	Splits int64
	// TotalGain and TotalCover are the sums of the gains and covers of these nodes.
	TotalGain, TotalCover float64
}

// Gain is the gain of a split on average, 0 where there is none.
func (i Importance) Gain() float64 { return i.mean(i.TotalGain) }

// Cover is the cover of a split on average, 0 where there is none.
func (i Importance) Cover() float64 { return i.mean(i.TotalCover) }

func (i Importance) mean(total float64) float64 {
	if i.Splits == 0 {
		return 0
	}
	return total / float64(i.Splits)
}

// Importances returns the importances of all features, in their order, those that no node
// looks at with zeros. Sums go in the order of trees and nodes. The weights of trees do not
// count, as gains are those of training.
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
