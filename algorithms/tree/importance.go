package tree

// Importance has statistics of the splits on one feature.
type Importance struct {
	// Feature is the name of the feature.
	Feature string
	// Splits is the number of nodes that split on the feature. XGBoost calls it weight, and
	// LightGBM split.
	Splits int64
	// TotalGain and TotalCover are the sums of the gains and covers of these nodes.
	TotalGain, TotalCover float64
}

// Gain returns the mean gain of the splits, or 0 if there are none.
func (i Importance) Gain() float64 { return i.mean(i.TotalGain) }

// Cover returns the mean cover of the splits, or 0 if there are none.
func (i Importance) Cover() float64 { return i.mean(i.TotalCover) }

func (i Importance) mean(total float64) float64 {
	if i.Splits == 0 {
		return 0
	}
	return total / float64(i.Splits)
}

// Importances returns the importances of all features, in the order of the features. They are
// zero for a feature on which no node splits. Sums are taken in the order of trees and nodes.
// The weights of trees are ignored, because gains are measured in training.
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
