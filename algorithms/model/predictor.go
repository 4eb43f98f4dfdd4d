package model

import "cmp"

// Target says what a model predicts.
type Target int

// These are the targets.
const (
	Number Target = iota
	Class
	Cluster
	Rank // a score by which the rows of a query are ranked
)

// Prediction describes the columns that a model adds to rows.
type Prediction struct {
	Target Target
	// Column is the name of the column of predictions.
	Column string
	// Scores is the name of the column of vectors with a value for each of Labels. Distance is
	// the name of the column of distances to the cluster. Each is "" if models of the kind do
	// not add this column.
	Scores, Distance string
	// Margins is set if scores are not probabilities. For two classes there is then one score,
	// which belongs to the second class.
	Margins bool
	// Labels are the classes or the mixture components, in the order of the scores. It is nil
	// for an estimator.
	Labels []string
	// With two classes, the model predicts the second class if its score is above Threshold; 0
	// means the default threshold.
	Threshold float64
}

// Named returns p with column as Column, scores as Scores and labels as Labels. An empty column
// or scores leaves the name in p as it is. If there are labels, a Target of Number becomes
// Class.
func (p Prediction) Named(column, scores string, labels []string) Prediction {
	p.Column, p.Scores, p.Labels = cmp.Or(column, p.Column), cmp.Or(scores, p.Scores), labels
	if p.Target == Number && len(labels) > 0 {
		p.Target = Class
	}
	return p
}

// Classes returns Labels if the model predicts classes, else nil.
func (p Prediction) Classes() []string {
	if p.Target != Class {
		return nil
	}
	return p.Labels
}

// Predictor is a Model that predicts, or a Stage that trains such a Model.
type Predictor interface {
	// Predicts describes the predictions. Predicts of a Stage returns the default names of
	// columns, even if the stage's parameters set other names.
	Predicts() Prediction
}

// PredictionOf returns the result of Predicts and true if its argument is a Predictor, else
// false.
func PredictionOf(of any) (Prediction, bool) {
	if p, ok := of.(Predictor); ok {
		return p.Predicts(), true
	}
	return Prediction{}, false
}
