package gbdt

import (
	"errors"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// trained is the key of the state.
var trained = shared.Scratch[*state]("training")

// state is the state of a training on a subtask. Slices with an element for each row have an
// element for each row of the subtask.
type state struct {
	params  *Params
	data    *bins.Data
	loss    loss
	outputs int
	metrics []metric
	spans   []bins.Span // the span of each shard; empty for a shard without rows
	queries [][]int32   // the queries of each shard, see queriesOf; nil without queries

	// These fields are the kept state; see kept.go. measurements is used only on subtask 0.
	*boosted
	*measurements

	margin [][]float64 // [output][row]
	// weight is the factor of each row's gradients: the row's weight times the weight of its
	// class, and 0 for a held-out row. nil means 1 for all rows.
	weight []float64
	units  []int64 // weight rounded to integers, for quantiles; nil where all are 1
	held   []bool  // whether each row is in the set "validation"; nil without this set

	sets []*measured // the training rows and the evaluation sets
	room []float64   // working memory for the rows of a shard
	view Rows        // the rows of the current shard

	bag     []bool  // the rows that the round's trees use; nil means all
	rows    []int32 // the indices of the same rows
	leaf    []int32 // the node in which each row ends in the current tree
	values  []float64
	grad    [][]float64 // of the rows of a shard
	hess    [][]float64
	quant   selection
	goss    selection
	factor  []float64 // factor of each row's gradients with GOSS
	dropped *dart
}

// measured is a set on which metrics are measured: the training rows, or an evaluation set.
type measured struct {
	name    string
	data    *bins.Data
	spans   []bins.Span
	queries [][]int32
	margin  [][]float64
	weight  []float64
	own     bool // the set has rows of its own, which are not training rows
	leaf    []int32
}

// span returns the span of the rows of a shard.
func (s *state) span(shard int) bins.Span { return s.spans[shard] }

// spansOf returns the span of the rows of each shard.
func spansOf(d *bins.Data, shards int) []bins.Span {
	spans := make([]bins.Span, shards)
	for _, s := range d.Shards {
		spans[s.Shard] = s
	}
	return spans
}

// queriesOf returns, for each shard, the index within the shard of the first row of each query,
// and then the number of rows in the shard.
func queriesOf(d *bins.Data, spans []bins.Span) [][]int32 {
	if d.Groups == nil {
		return nil
	}
	found := make([][]int32, len(spans))
	at := 0
	for _, s := range d.Shards {
		var own []int32
		for ; at < len(d.Groups) && int(d.Groups[at]) < s.First+s.Rows; at++ {
			own = append(own, d.Groups[at]-int32(s.First))
		}
		found[s.Shard] = append(own, int32(s.Rows))
	}
	return found
}

// show sets r to the rows of d in span, the rows of a shard. margin and weight have elements
// for all rows of d.
func show(r *Rows, d *bins.Data, span bins.Span, queries [][]int32, margin [][]float64, weight []float64) {
	lo, hi := span.First, span.First+span.Rows
	r.N, r.Label = span.Rows, d.Label[lo:hi]
	r.Upper, r.Weight, r.Groups = nil, nil, nil
	if d.Upper != nil {
		r.Upper = d.Upper[lo:hi]
	}
	if weight != nil {
		r.Weight = weight[lo:hi]
	}
	if queries != nil {
		r.Groups = queries[span.Shard]
	}
	r.Margin = r.Margin[:0]
	for _, m := range margin {
		r.Margin = append(r.Margin, m[lo:hi])
	}
}

// bytesPerRow returns the number of bytes that training needs for each row. For each output
// these are the margin, the gradient, the hessian, their integers, and the row's place in the
// order by nodes. In addition there are the leaf, the bag, and memory for sorting.
func (q *boosting) bytesPerRow(f *bins.Facts) int64 {
	p := &q.params
	n := int64(p.outputs(len(f.Classes)))*(8+8+16+4) + 4 + 4 + 1 + 4
	if p.ValidationFraction > 0 {
		n += 8 + 1 + 8 + 8
	} else if p.classWeights(f) != nil {
		n += 8
	}
	if p.GOSS {
		n += 8 + 8
	}
	return n
}

// bytesPerSetRow returns the number of bytes for each row of an evaluation set: the margins and
// the leaf.
func (q *boosting) bytesPerSetRow(f *bins.Facts) int64 {
	return 8*int64(q.params.outputs(len(f.Classes))) + 4
}

// open makes the state of the subtask.
func (q *boosting) open(ctx *comqueue.ComContext) error {
	data, err := q.table.Open(ctx)
	if err != nil {
		return err
	}
	f := data.Facts
	if err := errors.Join(q.checkFacts(f), q.params.checkKinds(data.Layout)); err != nil {
		return err
	}
	s := &state{params: &q.params, data: data, outputs: q.params.outputs(len(f.Classes)), boosted: boostedTrees.Get(ctx), measurements: &measurements{}}
	if ctx.TaskID() == 0 {
		s.measurements = measurementsKey.Get(ctx, 0)
	}
	if s.metrics, err = metricsOf(s.params); err != nil {
		return err
	}
	if err := s.params.draws(f.Rows); err != nil {
		return err
	}
	s.loss = newLoss(s.params, len(f.Classes))
	s.spans = spansOf(data, ctx.TotalShards())
	s.queries = queriesOf(data, s.spans)
	if s.margin, err = marginsOf(data, s.outputs); err != nil {
		return err
	}
	if err := s.weigh(ctx); err != nil {
		return err
	}
	if err := q.openSets(ctx, s); err != nil {
		return err
	}
	longest := 0
	for _, m := range append([]*measured{{spans: s.spans}}, s.sets...) {
		for _, span := range m.spans {
			longest = max(longest, span.Rows)
		}
	}
	s.room = make([]float64, longest)
	for range s.outputs {
		s.grad, s.hess = append(s.grad, make([]float64, longest)), append(s.hess, make([]float64, longest))
	}
	if q.params.DART {
		s.dropped = newDART(s)
	}
	trained.Put(ctx, s)
	q.putBuffers(ctx, s)
	return q.rejoin(s)
}

// checkFacts returns an error about labels and weights from which no model can be learnt.
func (q *boosting) checkFacts(f *bins.Facts) error {
	k := len(f.Classes)
	switch {
	case f.Declared == 0:
		return errors.New("there are no features")
	case !(f.Weight > 0):
		return errors.New("no row has a weight above 0")
	case !q.params.Objective.classes():
		return nil
	case q.params.Objective == Logistic && k > 2:
		return fmt.Errorf("column %q has %d classes, and the objective logistic takes two: use softmax", q.params.LabelCol, k)
	case k > maxOutputs:
		return fmt.Errorf("column %q has %d classes: at most %d are allowed, as each has a tree in every round", q.params.LabelCol, k, maxOutputs)
	}
	if err := f.CheckClasses(q.params.LabelCol, q.params.ClassWeights); err != nil {
		return err
	}
	if m := q.params.Start; m != nil && !slices.Equal(m.Classes.Values, f.Classes) {
		return fmt.Errorf("column %q has the classes %q, and the model to continue %q", q.params.LabelCol, f.Classes, m.Classes.Values)
	}
	return nil
}

// draws returns an error if Subsample or ValidationFraction is less than half a row of n rows.
func (p *Params) draws(n int64) error {
	var errs []error
	for _, of := range []struct {
		name  string
		share float64
	}{{"Subsample", p.Subsample}, {"ValidationFraction", p.ValidationFraction}} {
		if of.share > 0 && of.share*float64(n) < 0.5 {
			errs = append(errs, fmt.Errorf("%s is %v, which is not one of the %d rows", of.name, of.share, n))
		}
	}
	return errors.Join(errs...)
}

// marginsOf returns the margins of the rows. They are copied from the margin columns, or 0 if
// there are no margin columns.
func marginsOf(d *bins.Data, outputs int) ([][]float64, error) {
	if d.Margins != nil && d.Outputs != outputs {
		return nil, fmt.Errorf("there are %d columns of margins for %d outputs", d.Outputs, outputs)
	}
	margin := make([][]float64, outputs)
	for k := range margin {
		margin[k] = make([]float64, d.Rows)
		if d.Margins != nil {
			for i := range margin[k] {
				margin[k][i] = d.Margins[i*outputs+k]
			}
		}
	}
	return margin, nil
}

// weigh checks the labels, draws the rows to hold out, and sets weight.
func (s *state) weigh(ctx *comqueue.ComContext) error {
	classes := s.params.classWeights(s.data.Facts)
	fraction := s.params.ValidationFraction
	switch {
	case classes != nil || fraction > 0:
		s.weight = make([]float64, s.data.Rows)
	default:
		s.weight = s.data.Weight
	}
	if fraction > 0 {
		s.held = make([]bool, s.data.Rows)
	}
	var r Rows
	for _, span := range s.data.Shards {
		show(&r, s.data, span, s.queries, s.margin, s.data.Weight)
		draw := sharding.NewRandom(s.params.Seed, "gbdt validation", span.Shard, 0)
		for i := range span.Rows {
			if err := s.loss.check(&r, i); err != nil {
				return refusal(span.Shard, 0, i, fmt.Errorf("column %q: %w", s.params.LabelCol, err))
			}
			if classes == nil && fraction == 0 {
				continue
			}
			at, w := span.First+i, r.weight(i)
			if classes != nil {
				w *= classes[int(r.Label[i])]
			}
			if fraction > 0 && draw.Float64At(uint64(i)) < fraction {
				s.held[at], w = true, 0
			}
			s.weight[at] = w
		}
	}
	return nil
}

// classWeights returns the factor of the weights of rows for each class; nil means 1 for all
// classes.
func (p *Params) classWeights(f *bins.Facts) []float64 {
	if !p.Objective.classes() || p.ScalePosWeight == 1 && len(p.ClassWeights) == 0 && !p.Balanced {
		return nil
	}
	w := f.ClassFactors(p.ClassWeights, p.Balanced)
	if p.Objective == Logistic && p.ScalePosWeight != 1 {
		w[1] = p.ScalePosWeight
	}
	return w
}

// openSets makes the sets on which metrics are measured.
func (q *boosting) openSets(ctx *comqueue.ComContext, s *state) error {
	train := &measured{name: "train", data: s.data, spans: s.spans, queries: s.queries, margin: s.margin, weight: s.data.Weight}
	if s.held != nil {
		held := *train
		held.name = "validation"
		held.weight, train.weight = make([]float64, s.data.Rows), make([]float64, s.data.Rows)
		for i, out := range s.held {
			w := 1.0
			if s.data.Weight != nil {
				w = s.data.Weight[i]
			}
			if out {
				held.weight[i] = w
			} else {
				train.weight[i] = w
			}
		}
		s.sets = append(s.sets, &held)
	}
	for i, e := range q.sets {
		d, err := e.table.Open(ctx) // errors of Open name the set
		if err != nil {
			return err
		}
		m := &measured{name: e.name, data: d, own: true, weight: d.Weight, spans: spansOf(d, ctx.TotalShards())}
		m.queries = queriesOf(d, m.spans)
		if m.margin, err = marginsOf(d, s.outputs); err != nil {
			return fmt.Errorf("evaluation set %q: %w", e.name, err)
		}
		if err := s.checkSet(m, 1+i); err != nil {
			return fmt.Errorf("evaluation set %q: %w", e.name, err)
		}
		s.sets = append(s.sets, m)
	}
	if !s.params.NoTrainMetrics {
		s.sets = append([]*measured{train}, s.sets...)
	}
	return nil
}

// refusal returns an error about a row of an input of the queue. Input 0 has the training rows;
// the following inputs have the evaluation sets.
func refusal(shard, input, row int, err error) error {
	return &engine.RowError{Row: int64(row), Of: &engine.RowsOf{Shard: shard, Input: input}, Err: err}
}

// checkSet checks the labels of an evaluation set; input is its input number, for error
// messages.
func (s *state) checkSet(m *measured, input int) error {
	var r Rows
	for _, span := range m.data.Shards {
		show(&r, m.data, span, m.queries, m.margin, m.weight)
		for i, y := range r.Label {
			err := s.loss.check(&r, i)
			if s.params.Objective.classes() && !(y >= 0 && int(y) < len(s.data.Facts.Classes)) {
				err = errors.New("the label is not one of the classes that training has")
			}
			if err != nil {
				return refusal(span.Shard, input, i, fmt.Errorf("column %q: %w", s.params.LabelCol, err))
			}
		}
	}
	return nil
}

// weightOf returns the factor of a row's gradients.
func (s *state) weightOf(i int) float64 {
	if s.weight == nil {
		return 1
	}
	return s.weight[i]
}

// inBag reports whether a row is used for the trees of the round.
func (s *state) inBag(i int) bool { return s.bag == nil || s.bag[i] }
