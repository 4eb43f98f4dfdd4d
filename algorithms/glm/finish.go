package glm

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Measures of fit in Summary.Measures. Deviances are sums over weighted rows, not divided by
// the dispersion.
const (
	// Deviance is twice the weighted sum of the losses.
	Deviance = "deviance"
	// NullDeviance is the deviance of a model with only an intercept, fitted with the offset if
	// there is one. With NoIntercept it is the deviance of a model without coefficients. It is
	// not defined if no intercept gives the mean of the labels, as with counts that are all 0.
	// With NoInference it is not defined either if there is a Start, or both an offset and an
	// intercept.
	NullDeviance = "null_deviance"
	// Dispersion is 1 for the families Binomial and Poisson. For the other families it is
	// PearsonChiSquared over the residual degrees of freedom. It is defined if there is a table
	// of standard errors and, for these other families, there are residual degrees of freedom.
	Dispersion = "dispersion"
	// PearsonChiSquared is the weighted sum of squared residuals over their variances without
	// the dispersion. It is defined if there is a table of standard errors. For Poisson, a
	// value well above the residual degrees of freedom means that counts vary more than the
	// family assumes.
	PearsonChiSquared = "pearson_chi_squared"
	// AIC is 2·coefficients − 2·log-likelihood, by the conventions of R's glm. It is defined if
	// there is a table of standard errors. For Gaussian, Gamma and inverse Gaussian (Tweedie
	// with the Power 3), the dispersion counts as one more coefficient, and the likelihood uses
	// deviance/observations as dispersion. A weight multiplies the log-likelihood, as if the
	// row occurred that many times, except in two families. For Gaussian the weight divides the
	// variance. For Binomial it is the number of trials: if there are labels other than 0 and
	// 1, the trials and the successes, weight·label, must be whole numbers. For Poisson the
	// factorial of a label is Γ(label+1). Tweedie with other powers has no density in closed
	// form, and no AIC.
	AIC = "aic"
)

// finish returns the model of a completed fit.
func (p Params) finish(f *linearmodel.Fit) (model.Model, error) {
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
	known, err := p.nullModelOf(f, loss, s)
	if err != nil {
		return nil, err
	}
	s.Note(NullDeviance, float64(2*float64(s.Weight*known.Loss)))
	if f.Result.Information == nil || f.Result.Reason == optim.Diverging {
		return m, nil
	}
	return m, p.table(f, loss, s, known)
}

// nullModelOf returns the results of the queue of the null model. If that queue was not needed,
// nullModelOf computes them from the state at the start of training, where the model is the
// null model.
func (p Params) nullModelOf(f *linearmodel.Fit, loss deviance, s *linearmodel.Summary) (nullRow, error) {
	known := nullRow{Loss: math.NaN()}
	if p.needsNullModel() {
		codec, err := batch.NewCodec[nullRow]()
		if err != nil {
			return known, err
		}
		list, err := codec.Rows(arrowrows.Record(nullModelKey.Get(f.Context).Batch()))
		if err != nil {
			return known, err
		}
		if len(list) != 1 {
			return known, fmt.Errorf("there are %d rows of the null model, want one", len(list))
		}
		return list[0], nil
	}
	begun := p.NoIntercept || p.OffsetCol == "" && loss.shift == loss.link.of(f.Facts.LabelMean)
	if p.Start == nil && len(s.Record) > 0 && begun {
		known.Loss = s.Record[0].Loss
	}
	switch {
	case p.Family == Gamma:
		// At the mean μ of the labels, the loss of a row is y/μ − 1 − log(y/μ).
		known.Labels = float64(s.Weight * (kernel.Log(f.Facts.LabelMean) - known.Loss))
	case p.Family == Binomial && !zerosAndOnes(f.Facts):
		known.Broken = 1
	}
	return known, nil
}

// zerosAndOnes reports whether labels from 0 to 1 are all 0 or 1. Only then do they have the
// largest variance that is possible for their mean.
func zerosAndOnes(f *rows.Facts) bool {
	largest := float64(f.LabelMean * (1 - f.LabelMean))
	return math.Abs(float64(f.LabelStd*f.LabelStd)-largest) <= 1e-9*largest
}

// table computes the table of standard errors, and the measures that depend on it.
func (p Params) table(f *linearmodel.Fit, loss deviance, s *linearmodel.Summary, null nullRow) error {
	// The statistics are the last parameters. Without their rows, the triangle is the matrix of
	// the coefficients.
	n := len(f.Result.Parameters)
	at := func(statistic int) float64 {
		k := n - statistics + statistic
		return f.Result.Information[k*(k+1)/2+k]
	}
	pearson, below := at(pearsonTally), at(saturatedTally)
	plain := *f
	result := *f.Result
	n -= statistics
	result.Parameters, result.Information = result.Parameters[:n], result.Information[:n*(n+1)/2]
	plain.Result = &result
	loss.withStatistics = false
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
	if aic, ok := p.aic(f, s, below, null); ok {
		s.Note(AIC, aic)
	}
	return nil
}

// byStudent computes p values by Student's distribution, because the dispersion was estimated.
// Without residual degrees of freedom it removes the statistics.
func byStudent(table *linearmodel.Inference) {
	table.Statistic = "t"
	for i := range table.Terms {
		t := &table.Terms[i]
		switch {
		case !(table.Freedom > 0):
			*t = linearmodel.Term{Name: t.Name, Estimate: t.Estimate}
		case t.Defined:
			t.PValue = linearmodel.StudentTail(t.Statistic, table.Freedom)
		}
	}
}

// aic returns Akaike's criterion, and whether it is defined. below is the mean of saturated.
func (p Params) aic(f *linearmodel.Fit, s *linearmodel.Summary, below float64, null nullRow) (float64, bool) {
	twice := float64(2 * float64(s.Weight*s.Loss)) // the deviance
	rank := 2 * float64(s.Inference.Rank)
	n := float64(f.Facts.Weighing)
	switch {
	case p.Family == Gaussian:
		return float64(n*(kernel.Log(2*math.Pi*twice/n)+1)) - null.Logs + 2 + rank, true
	case p.Family == Poisson:
		return twice + float64(2*float64(s.Weight*below)) + rank, true
	case p.Family == Binomial && null.Broken == 0:
		return twice + float64(2*null.Labels) + rank, true
	case p.Family == Gamma:
		// With the shape a, −log-likelihood = Σ u·(d/2 + 1)·a + Σ u·log y − W·(a·log a − log Γ(a)).
		shape := s.Weight / twice
		fixed := float64(shape*kernel.Log(shape)) - linearmodel.LogGamma(shape)
		return float64(shape*(twice+float64(2*s.Weight))) + float64(2*null.Labels) - float64(2*float64(s.Weight*fixed)) + 2 + rank, true
	case p.Family == Tweedie && p.power() == inverseGaussian:
		return float64(s.Weight*(kernel.Log(2*math.Pi*twice/s.Weight)+1)) + float64(3*null.Labels) + 2 + rank, true
	}
	return 0, false
}
