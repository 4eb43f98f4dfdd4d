package kmeans

import (
	"cmp"

	"github.com/superstep-ml/superstep/algorithms/model"
)

var _ model.Estimator = Params{}

// Predicts implements model.Predictor.
func (p Params) Predicts() model.Prediction {
	return model.Prediction{Target: model.Cluster, Column: "cluster", Distance: "distance"}
}

// Command implements model.Estimator.
func (p Params) Command() model.Command {
	return model.Command{Name: "kmeans", About: "clusters around k centres", Curve: true, Flags: []model.Flag{
		{Name: "k", Param: "K", Tag: `want:"1..2147483647" required:"" placeholder:"N" help:"Number of clusters."`},
		{Name: "init", Param: "Init", Tag: `help:"First centres: random, k-means++ or 'k-means||' (the default)." enum:"random,k-means++,k-means||" default:"k-means||"`},
		{Name: "distance", Param: "Distance", Tag: `help:"Distance measure: euclidean (the default) or cosine." enum:"euclidean,cosine" default:"euclidean"`},
		{Name: "max-iter", Param: "MaxIter", Tag: `want:"1..2147483646" placeholder:"N" help:"Largest number of updates of the centres (default: 100)."`},
		{Name: "tol", Param: "Tol", Tag: `want:"0.." zero:"-1" placeholder:"DISTANCE" help:"Training ends when no centre moved farther than this (default: 0.0001; 0: when none moves)."`},
		{Name: "init-steps", Param: "InitSteps", Tag: `want:"1..2147483647" of:"init=k-means||" placeholder:"N" help:"Of k-means||: rounds in which candidates for centres are drawn (default: 3)."`},
		{Name: "oversampling", Param: "Oversampling", Tag: `want:">0..2147483647" of:"init=k-means||" placeholder:"N" help:"Of k-means||: candidates that a round draws, on average (default: twice --k)."`},
		{Name: "precision", Param: "Precision", Tag: `placeholder:"NAME" help:"double (the default), or single: distances in float32, with half the memory." default:"double"`},
	}}
}

// Predicts implements model.Predictor.
func (m *Model) Predicts() model.Prediction {
	p := Params{}.Predicts().Named(m.PredictionCol, "", nil)
	p.Distance = cmp.Or(m.DistanceCol, p.Distance)
	return p
}

// Describe implements model.Describer.
func (m *Model) Describe(feature func(i int) string) (d model.Description) {
	d.Loss = "inertia"
	for _, s := range m.History {
		d.Record = append(d.Record, s.Inertia)
	}
	d.AddVectors("centres", "cluster", "size", m.Sizes, m.Centers, feature)
	return d
}
