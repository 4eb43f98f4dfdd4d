package gmm

import (
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/model"
)

var _ model.Estimator = Params{}

// Predicts implements model.Predictor.
func (Params) Predicts() model.Prediction {
	return model.Prediction{Target: model.Cluster, Column: "component", Scores: "probabilities"}
}

// Command implements model.Estimator.
func (Params) Command() model.Command {
	return model.Command{Name: "gmm", About: "clusters as a mixture of k Gaussian distributions", Curve: true, Flags: []model.Flag{
		{Name: "k", Param: "K", Tag: `want:"1..2147483647" required:"" placeholder:"N" help:"Number of components."`},
		{Name: "covariance", Param: "Covariance", Tag: `placeholder:"SHAPE" help:"Shape of the components: full (the default), diagonal, spherical, or tied, the same for all." default:"full"`},
		{Name: "restarts", Param: "Restarts", Tag: `want:"1..1000" placeholder:"N" help:"Number of trainings from different initial components; the most likely mixture is kept (default: 1)."`},
		{Name: "regularization", Param: "Regularization", Tag: `want:"0.." zero:"-1" placeholder:"VARIANCE" help:"Number added to all variances; 0: none (default: 0.000001)."`},
		{Name: "max-iter", Param: "MaxIter", Tag: `want:"1..2147483645" placeholder:"N" help:"Largest number of updates (default: 200)."`},
		{Name: "tol", Param: "Tol", Tag: `want:"0.." zero:"-1" placeholder:"GAIN" help:"Training ends when an update raises the mean log-likelihood by at most this; 0: when it does not rise (default: 0.000001)."`},
	}}
}

// Predicts implements model.Predictor.
func (m *Model) Predicts() model.Prediction {
	var components []string
	for c := range m.Weights {
		components = append(components, strconv.Itoa(c))
	}
	return Params{}.Predicts().Named(m.PredictionCol, m.ProbabilityCol, components)
}

// Describe implements model.Describer.
func (m *Model) Describe(feature func(i int) string) (d model.Description) {
	d.Loss, d.Record = "mean log-likelihood", m.Record
	d.AddVectors("means", "component", "weight", m.Weights, m.Means, feature)
	return d
}
