package glm

import (
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/affine"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Measures of fit in Summary.Measures. Deviances are those of the weighted rows, not
// divided by the dispersion.
const (
	// Deviance is twice the weighted sum of the losses.
	Deviance = "deviance"
	// NullDeviance is that with an intercept alone; defined with an intercept, without an
	// offset, and where training starts at it and not at another model.
	NullDeviance = "null_deviance"
	// Dispersion is 1 for the families Binomial and Poisson; for the others it is
	// PearsonChiSquared over the residual degrees of freedom; where there is a table.
	Dispersion = "dispersion"
	// PearsonChiSquared is the weighted sum of squared residuals over their variances but for
	// the dispersion; where there is a table. For Poisson, one well above the residual degrees
	// of freedom tells that counts vary more than the family says.
	PearsonChiSquared = "pearson_chi_squared"
	// AIC is 2·coefficients − 2·log-likelihood, for Gaussian with the dispersion as one more
	// coefficient; where there is a table, no weights are named, and the family is Gaussian,
	// Poisson, or Binomial with labels 0 and 1.
	AIC = "aic"
)

// finish makes the model.
func (p Params) finish(f *affine.Fit) (model.Model, error) {
	loss := f.Objective.Loss.(deviance)
	if !p.NoIntercept {
		f.Model.Intercepts[0] += loss.shift
	}
	m := &Model{Family: p.Family, Link: p.link(), PredictionCol: p.PredictionCol}
	if p.Family == Tweedie {
		m.Power = p.power()
	}
	m.Take(f.Model)
	s := &m.Summary
	s.Note(Deviance, float64(2*float64(s.Weight*s.Loss)))
	if !p.NoIntercept && p.OffsetCol == "" && p.Start == nil && len(s.Record) > 0 && loss.shift == loss.link.of(f.Facts.LabelMean) {
		s.Note(NullDeviance, float64(2*float64(s.Weight*s.Record[0].Loss)))
	}
	if f.Result.Information == nil || f.Result.Reason == optim.Diverging {
		return m, nil
	}
	return m, p.table(f, loss, s)
}

// table makes the table of standard errors, and what depends on it.
func (p Params) table(f *affine.Fit, loss deviance, s *affine.Summary) error {
	// The tallies are the last parameters: without their rows the triangle is that of the
	// coefficients.
	n := len(f.Result.Parameters)
	at := func(tally int) float64 {
		k := n - tallies + tally
		return f.Result.Information[k*(k+1)/2+k]
	}
	pearson, below := at(pearsonTally), at(saturatedTally)
	plain := *f
	result := *f.Result
	n -= tallies
	result.Parameters, result.Information = result.Parameters[:n], result.Information[:n*(n+1)/2]
	plain.Result = &result
	loss.tally = false
	plain.Objective.Loss = loss

	known := p.Family == Binomial || p.Family == Poisson
	table, err := plain.ZTable(func(freedom float64) float64 {
		if known {
			return 1
		}
		return float64(s.Weight*pearson) / freedom
	})
	if err != nil || table == nil {
		return err
	}
	s.Inference = table
	s.Note(PearsonChiSquared, s.Weight*pearson)
	if known {
		s.Note(Dispersion, 1)
	} else if table.Freedom > 0 {
		s.Note(Dispersion, s.Weight*pearson/table.Freedom)
	}
	if !known {
		byStudent(table)
	}
	if aic, ok := p.aic(f, s, below); ok {
		s.Note(AIC, aic)
	}
	return nil
}

// byStudent makes z statistics t statistics, as the dispersion was estimated. Without
// residual degrees of freedom there are none.
func byStudent(table *affine.Inference) {
	table.Statistic = "t"
	for i := range table.Terms {
		t := &table.Terms[i]
		switch {
		case !(table.Freedom > 0):
			*t = affine.Term{Name: t.Name, Estimate: t.Estimate}
		case t.Defined:
			t.PValue = affine.StudentTail(t.Statistic, table.Freedom)
		}
	}
}

// aic returns Akaike's criterion, where it is defined. below is the mean of saturated.
func (p Params) aic(f *affine.Fit, s *affine.Summary, below float64) (float64, bool) {
	if p.WeightCol != "" {
		return 0, false
	}
	twice := float64(2 * float64(s.Weight*s.Loss)) // the deviance
	rank := 2 * float64(s.Inference.Rank)
	switch p.Family {
	case Gaussian:
		return float64(s.Weight*(kernel.Log(2*math.Pi*twice/s.Weight)+1)) + 2 + rank, true
	case Poisson:
		return twice + float64(2*float64(s.Weight*below)) + rank, true
	case Binomial:
		// Labels of 0 and 1 are those with the largest variance about their mean.
		mean, std := f.Facts.LabelMean, f.Facts.LabelStd
		largest := float64(mean * (1 - mean))
		if math.Abs(float64(std*std)-largest) > 1e-9*largest {
			return 0, false
		}
		return twice + rank, true
	}
	return 0, false
}
