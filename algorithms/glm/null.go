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

// What is to be known of labels, weights and offsets beside the training itself takes a
// queue of its own, before it, where training does not begin at the null model, or the
// likelihood has parts that are no deviance. It never looks at a feature.
//
// Each superstep sums loss, slope and information of the null model, whose only parameter is
// the intercept, at one value of it, and takes a step of Fisher scoring, or half of the last
// one where the loss grew. The sums are per shard and up the tree over shards.

// Places of the sums, each weighted but the last two.
const (
	nullLoss = iota
	nullSlope
	nullInformation
	nullLabels // the part of the log-likelihood that labels and weights decide, see ofLabels
	nullLogs   // logarithms of weights
	nullBroken // Binomial: rows whose trials or successes are no whole numbers
	nullSums
)

const (
	nullSteps = 100
	// inverseGaussian is the Power of the family Tweedie whose density is that of the inverse
	// Gaussian distribution; there is no closed form of the others.
	inverseGaussian = 3
	// nullTol is the fall of the loss, relative to it, that a step must promise.
	nullTol = 1e-15
	// whole is how far from a whole number a count may be, for labels that were divided by
	// their weights.
	whole = 1e-6
)

// Objects of the queue, and its row as the training has it.
var (
	nullTotals = shared.Scratch[[]float64]("sums")
	nullWork   = shared.Scratch[*nullEvaluator]("null model")
	nullAt     = shared.Replicated("search", shared.Msgpack[*nullSearch]())
	besides    = comqueue.BroadcastRows("found null model")
)

// nullRow is what the queue finds. Loss is the mean loss of the null model, NaN where it has
// no optimum.
type nullRow struct {
	Loss   float64 `column:"loss"`
	Labels float64 `column:"labels"`
	Logs   float64 `column:"logs"`
	Broken float64 `column:"broken"`
}

// beside says whether the queue is needed.
func (p Params) beside() bool {
	if p.NoInference {
		return false
	}
	weighs := p.WeightCol != "" && (p.Family == Gaussian || p.Family == Binomial)
	labels := p.Family == Gamma && (p.OffsetCol != "" || p.NoIntercept) || p.Family == Tweedie && p.power() == inverseGaussian
	return p.Start != nil || p.OffsetCol != "" && !p.NoIntercept || (weighs || labels) && p.infers()
}

// addNull adds the queue over checked rows.
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

// nullSearch is where the search for the intercept stands.
type nullSearch struct {
	At          float64 // where the sums of the superstep are taken
	Best, Step  float64 // the best intercept so far, and the step tried from it
	Loss, Slope float64 // there
	Found, Done bool    // Found: the loss there is finite

	Weight               float64 // of all rows
	Labels, Logs, Broken float64 // see nullRow, of the latest superstep
}

// nullStart begins with the mean of the labels, moved by that of the offsets.
func (p Params) nullStart(f *rows.Facts) *nullSearch {
	if p.NoIntercept {
		return &nullSearch{Weight: f.Weight}
	}
	return &nullSearch{At: p.link().of(f.LabelMean) - f.OffsetMean, Weight: f.Weight}
}

// take takes the sums at s.At and says where the next are to be taken. Where the intercept
// is fixed the first are all.
func (s *nullSearch) take(sums []float64, fixed bool) {
	loss, slope, information := sums[nullLoss], sums[nullSlope], sums[nullInformation]
	switch {
	case s.Done:
	case s.At-s.At != 0: // labels whose mean no intercept gives
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

// promises says whether the step may lower the loss by more than its rounding.
func (s *nullSearch) promises() bool { return math.Abs(s.Step*s.Slope) > nullTol*s.Loss }

// nullEvaluator sums over the rows of a subtask.
type nullEvaluator struct {
	data  *rows.Data
	loss  deviance
	batch objective.Batch
}

// nullChunk is how many rows are evaluated at a time. No bit depends on it.
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

// ofLabels returns the part of a row's log-likelihood that its label and weight decide, as
// the families have it: for Binomial how far below 0 it is where the proportion is the one
// expected, of w·y successes in w trials, which is 0 for labels 0 and 1; for Gamma and the
// inverse Gaussian family w·log y. It is false where successes or trials are no whole
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
