package model

import "cmp"

// Target is what a model predicts.
type Target int

// The targets.
const (
	Number Target = iota
	Class
	Cluster
	Rank // a score by which the rows of a query are put in order
)

// Prediction is what a model adds to rows.
type Prediction struct {
	Target Target
	// Column names the predictions.
	Column string
	// Scores names the vector with a value for each of Labels, and Distance the distance to the
	// cluster; "" where models of the kind have none.
	Scores, Distance string
	// Margins says that scores are no probabilities, so that two classes have one of them, that
	// of the second.
	Margins bool
	// Labels are the classes in their order, or the components; an estimator has none.
	Labels []string
	// Threshold is the score of the second of two classes above which that is predicted; 0 for
	// the usual one.
	Threshold float64
}

// Named returns p with the names that a model was given, "" for the usual ones, and its labels,
// which are classes where p predicts no clusters.
func (p Prediction) Named(column, scores string, labels []string) Prediction {
	p.Column, p.Scores, p.Labels = cmp.Or(column, p.Column), cmp.Or(scores, p.Scores), labels
	if p.Target == Number && len(labels) > 0 {
		p.Target = Class
	}
	return p
}

// Classes returns the labels of a model that predicts classes, else nil.
func (p Prediction) Classes() []string {
	if p.Target != Class {
		return nil
	}
	return p.Labels
}

// Predictor is a Model that predicts, or a Stage that trains one.
type Predictor interface {
	// Predicts tells what is predicted. A Stage gives the usual names of columns, whatever names
	// it was given.
	Predicts() Prediction
}

// PredictionOf returns what a model or stage predicts, and whether it predicts.
func PredictionOf(of any) (Prediction, bool) {
	if p, ok := of.(Predictor); ok {
		return p.Predicts(), true
	}
	return Prediction{}, false
}
