package glm

import (
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// The null model has only an intercept. If training does not begin at the null model, a
// separate queue before the training fits it. This queue also sums the terms of the
// log-likelihood that are not part of the deviance. It reads labels, weights and offsets, but
// no features.
//
// Each superstep sums loss, slope and information at one value of the intercept. It then takes
// a step of Fisher scoring, or half of the last step if the loss has grown. Sums are computed
// per shard, and then folded up the tree over shards.

// Indices of the sums. All but the last two are weighted.
const (
	nullLoss = iota
	nullSlope
	nullInformation
	nullLabels // the terms of the log-likelihood that depend only on labels and weights, see ofLabels
	nullLogs   // sum of the logarithms of weights
	nullBroken // Binomial: number of rows whose trials or successes are not whole numbers
	nullSums
)

const (
	nullSteps = 100
	// inverseGaussian is the Power with which Tweedie is the inverse Gaussian distribution,
	// whose density has a closed form. Other powers have none.
	inverseGaussian = 3
	// nullTol is the least expected decrease of the loss, as a fraction of the loss, for which
	// a step is taken.
	nullTol = 1e-15
	// whole is the largest difference of a count from a whole number that may be due to
	// rounding: labels are counts that were divided by weights.
	whole = 1e-6
)

// These are the objects of the queue, and the broadcast of its row to the training.
var (
	nullTotals   = shared.Scratch[[]float64]("sums")
	nullWork     = shared.Scratch[*nullEvaluator]("null model")
	nullAt       = shared.Replicated("search", shared.Msgpack[*nullSearch]())
	nullModelKey = comqueue.BroadcastRows("found null model")
)

// nullRow is the result of the queue. Loss is the mean loss of the null model, or NaN if there
// is no optimum.
type nullRow struct {
	Loss   float64 `column:"loss"`
	Labels float64 `column:"labels"`
	Logs   float64 `column:"logs"`
	Broken float64 `column:"broken"`
}

// needsNullModel reports whether the queue of the null model is needed.
func (p Params) needsNullModel() bool {
	if p.NoInference {
		return false
	}
	weighs := p.WeightCol != "" && (p.Family == Gaussian || p.Family == Binomial)
	labels := p.Family == Gamma && (p.OffsetCol != "" || p.NoIntercept) || p.Family == Tweedie && p.power() == inverseGaussian
	return p.Start != nil || p.OffsetCol != "" && !p.NoIntercept || (weighs || labels) && p.infers()
}

// addNull adds the queue of the null model, over checked rows.
func (p Params) addNull(b *engine.Builder, t rows.Table) *engine.Dataset {
	loss := p.devianceOf(false)
	return t.Init(comqueue.New(b, kind+" null")).
		Add(comqueue.Named("open", comqueue.Do(func(ctx *comqueue.ComContext) error {
			if nullWork.Has(ctx) {
				clear(nullTotals.Get(ctx))
				return nil
			}
			data, err := t.Open(ctx)
			if err != nil {
				return err
			}
			nullWork.Put(ctx, &nullEvaluator{data: data, loss: loss})
			nullTotals.Put(ctx, make([]float64, nullSums))
			if !nullAt.Has(ctx) {
				nullAt.Put(ctx, p.nullStart(data.Facts))
			}
			return nil
		}))).
		Add(comqueue.Named("sum", comqueue.ForEachShard(nullTotals, func(ctx *comqueue.ComContext, shard int, out []float64) error {
			e := nullWork.Get(ctx)
			e.sum(e.data.Block(shard), nullAt.Get(ctx).At, out)
			return nil
		}))).
		Add(comqueue.AllReduce(nullTotals)).
		Add(comqueue.Named("step", comqueue.Do(func(ctx *comqueue.ComContext) error {
			s, sums := nullAt.Get(ctx), nullTotals.Get(ctx)
			s.take(sums, p.NoIntercept)
			s.Labels, s.Logs, s.Broken = sums[nullLabels], sums[nullLogs], sums[nullBroken]
			return nil
		}))).
		SetMaxIter(nullSteps).
		SetCompareCriterionOfNode0(func(ctx *comqueue.ComContext) (bool, error) { return nullAt.Get(ctx).Done, nil }).
		CloseOnNode0(comqueue.Output(func(ctx *comqueue.ComContext) ([]nullRow, error) {
			s := nullAt.Get(ctx)
			row := nullRow{Loss: math.NaN(), Labels: s.Labels, Logs: s.Logs, Broken: s.Broken}
			if s.Done && s.Found {
				row.Loss = s.Loss / s.Weight
			}
			return []nullRow{row}, nil
		})).
		Exec()
}

// nullSearch is the state of the search for the intercept.
type nullSearch struct {
	At          float64 // the intercept at which this superstep computes the sums
	Best, Step  float64 // the best intercept so far, and the step that is tried from it
	Loss, Slope float64 // loss and slope at Best
	Found, Done bool    // Found: the loss at Best is finite. Done: the search has ended

	Weight               float64 // total weight of all rows
	Labels, Logs, Broken float64 // see nullRow; from the latest superstep
}

// nullStart returns a search that begins at the margin of the mean label, minus the mean
// offset. With NoIntercept it begins at 0.
func (p Params) nullStart(f *rows.Facts) *nullSearch {
	if p.NoIntercept {
		return &nullSearch{Weight: f.Weight}
	}
	return &nullSearch{At: p.link().of(f.LabelMean) - f.OffsetMean, Weight: f.Weight}
}

// take takes the sums at s.At and sets s.At to the next intercept. If the intercept is fixed,
// only the first sums are used.
func (s *nullSearch) take(sums []float64, fixed bool) {
	loss, slope, information := sums[nullLoss], sums[nullSlope], sums[nullInformation]
	switch {
	case s.Done:
	case s.At-s.At != 0: // no intercept gives the mean of the labels
		s.Done = true
	case loss-loss == 0 && (!s.Found || loss <= s.Loss):
		s.Best, s.Loss, s.Slope, s.Found = s.At, loss, slope, true
		s.Step = -slope / information
		s.Done = fixed || !s.promises()
	case !s.Found:
		s.Done = true
	default:
		s.Step /= 2
		s.Done = !s.promises()
	}
	if next := s.Best + s.Step; next == s.Best {
		s.Done = true
	} else {
		s.At = next
	}
}

// promises reports whether the step may lower the loss by more than the rounding error of the
// loss.
func (s *nullSearch) promises() bool { return math.Abs(s.Step*s.Slope) > nullTol*s.Loss }

// nullEvaluator computes the sums over the rows of a subtask.
type nullEvaluator struct {
	data  *rows.Data
	loss  deviance
	batch objective.Batch
}

// nullChunk is the number of rows evaluated at a time. Results do not depend on it.
const nullChunk = 256

// sum adds the rows of a shard to out.
func (e *nullEvaluator) sum(rows *rows.Block, intercept float64, out []float64) {
	b := &e.batch
	if b.Loss == nil {
		room := make([]float64, 5*nullChunk)
		cut := func(k int) []float64 { return room[k*nullChunk : (k+1)*nullChunk] }
		b.Margin, b.Loss, b.Slope, b.Curve, b.Work = cut(0), cut(1), cut(2), cut(3), cut(4)
	}
	for lo := 0; lo < rows.N; lo += nullChunk {
		n := min(nullChunk, rows.N-lo)
		b.N, b.K, b.Label = n, 1, rows.Label[lo:lo+n]
		b.Margin = b.Margin[:n]
		for i := range n {
			b.Margin[i] = intercept
			if rows.Offset != nil {
				b.Margin[i] += rows.Offset[lo+i]
			}
		}
		e.loss.At(b)
		for i := range n {
			w := 1.0
			if rows.Weight != nil {
				w = rows.Weight[lo+i]
			}
			if w == 0 {
				continue
			}
			out[nullLoss] += float64(w * b.Loss[i])
			out[nullSlope] += float64(w * b.Slope[i])
			out[nullInformation] += float64(w * b.Curve[i])
			if w != 1 {
				out[nullLogs] += kernel.Log(w)
			}
			part, ok := e.loss.ofLabels(w, b.Label[i])
			out[nullLabels] += part
			if !ok {
				out[nullBroken]++
			}
		}
		b.Margin = b.Margin[:cap(b.Margin)][:nullChunk]
	}
}

// ofLabels returns the term of a row's log-likelihood that depends only on label y and weight
// w, as far as the family needs it. For Binomial it is minus the log-likelihood of w·y
// successes in w trials with the expected proportion y; labels 0 and 1 give 0. For Gamma and
// the inverse Gaussian family it is w·log y. ok is false if successes or trials are not whole
// numbers.
func (l deviance) ofLabels(w, y float64) (part float64, ok bool) {
	switch {
	case l.power == 2 || l.power == inverseGaussian:
		return float64(w * kernel.Log(y)), true
	case l.family != Binomial || y == 0 || y == 1:
		return 0, true
	}
	m, k := math.Round(w), math.Round(float64(w*y))
	if math.Abs(m-w) > whole || math.Abs(k-float64(w*y)) > whole {
		return 0, false
	}
	ways := linearmodel.LogGamma(m+1) - linearmodel.LogGamma(k+1) - linearmodel.LogGamma(m-k+1)
	return -ways - float64(w*float64(y*kernel.Log(y))) - float64(w*float64((1-y)*kernel.Log(1-y))), true
}
