package model

import "cmp"

// Target is what a model predicts.
type Target int

// The targets.
const (
	Number Target = iota
	Class
	Cluster
	Rank // a score that orders the rows of a query
)

// Prediction is what a model adds to rows.
type Prediction struct {
	Target Target
	// Column names the predictions.
	Column string
	// Scores names the column of vectors with a value for each of Labels, and Distance that of
	// distances to the cluster. Each is "" where models of the kind have none.
	Scores, Distance string
	// Margins says that scores are no probabilities. Two classes then have one score, that of
	// the second.
	Margins bool
	// Labels are the classes or the components, in their order. An estimator has none.
	Labels []string
	// With two classes, the second is predicted if its score is above Threshold; 0 means the
	// usual threshold.
	Threshold float64
}

// Named returns p with the names of a model's columns, "" for the usual ones, and with its
// labels. With labels, a Target of Number becomes Class.
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
	// Predicts tells what is predicted. A Stage returns the usual names of columns, even if it
	// was given others.
	Predicts() Prediction
}

// PredictionOf returns what a model or stage predicts, and whether it predicts.
func PredictionOf(of any) (Prediction, bool) {
	if p, ok := of.(Predictor); ok {
		return p.Predicts(), true
	}
	return Prediction{}, false
}
