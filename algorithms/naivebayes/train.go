package naivebayes

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// Train fits a classifier and returns the model as a dataset of one row. Its column "model"
// holds the bytes that Model.Encode returns. A second column has nulls and the type of the
// labels.
//
// The training queue is named "naivebayes" and has one superstep. For Gaussian it has two: the
// first computes the means of the classes, and the second the variances about these means.
// Errors in the parameters, or in the columns that they name, are reported when the job is
// built, with the caller's line.
func Train(d *engine.Dataset, p Params) *engine.Dataset {
	const op = "naivebayes.Train"
	b, refused := model.Begin(op, d, p.Validate())
	if refused != nil {
		return refused
	}
	t, err := rows.Check(op, d, p.columns(), rows.ClassLabel)
	if err == nil && t.Sparse && p.Binarize < 0 {
		err = fmt.Errorf("column %q is sparse and Binarize is %v: features that sparse rows leave out would count as present; want 0 or more", t.Vector(), p.Binarize)
	}
	q := counting{params: p.withDefaults(), table: t, schema: arrowrows.Arrow(d.Schema())}
	label, missing := signature.ClassColumn(q.schema, p.LabelCol)
	if err = cmp.Or(err, missing); err != nil {
		return model.Refuse(b, op, err)
	}
	supersteps := 1
	if p.Family == Gaussian {
		supersteps = 2
	}
	return t.Init(comqueue.New(b, Kind)).
		Add(comqueue.Named("preallocate", comqueue.Do(q.preallocate))).
		Add(comqueue.Named("count", comqueue.ForEachShard(counts, q.count))).
		Add(comqueue.AllReduce(counts)).
		Add(comqueue.Named("note", comqueue.Do(q.note))).
		SetMaxIter(supersteps).
		CloseOnNode0(signature.ModelCloser(label, q.finish)).
		Exec()
}

// These are the keys of the queue's objects.
var (
	counts  = shared.Scratch[[]float64]("counts")
	counted = shared.Scratch[*sums]("sums")
	first   = shared.Replicated("first sums", shared.Float64s()) // sums of the first superstep of Gaussian

	// latest has the sums of the latest superstep. It is an object of shard 0, which subtask 0
	// always owns. So the subtask that closes the queue can read the sums, even if it did not
	// run the superstep.
	latest = shared.PerShard("latest sums", shared.Float64s())
)

// sums is the state of a training on a subtask. Its matrices have a row for each class.
type sums struct {
	data    *rows.Data
	k, d    int
	priors  []float64
	means   []float64 // for Gaussian: the k*d means, from the first superstep
	present []float64 // for Gaussian and sparse rows: for each class and feature, the weight of the rows that have the feature
}

// counting has the parameters of a training. Its methods are the stages of the queue.
type counting struct {
	params Params
	table  rows.Table
	schema *arrow.Schema
}

// maxCounts is the largest size in bytes of the counts of a shard.
const maxCounts = 1 << 30

func (q counting) preallocate(ctx *comqueue.ComContext) error {
	if first.Has(ctx) && counted.Has(ctx) {
		s := counted.Get(ctx)
		counts.Put(ctx, make([]float64, 2*s.k*s.d))
		return nil
	}
	data, err := q.table.Open(ctx)
	if err != nil {
		return err
	}
	s := &sums{data: data, k: len(data.Facts.Classes), d: data.Facts.Dim()}
	if data.Facts.Declared == 0 {
		return errors.New("there are no features")
	}
	if err := rows.TwoClasses(q.params.LabelCol, data.Facts.Classes); err != nil {
		return err
	}
	if s.priors, err = q.params.priors(data.Facts); err != nil {
		return err
	}
	if err := affordable(s.k, s.d); err != nil {
		return err
	}
	counted.Put(ctx, s)
	size := s.k * s.d
	switch sums, joins := first.Lookup(ctx); {
	case joins:
		q.takeFirst(s, sums)
		size *= 2
	case q.params.Family == Gaussian && q.table.Sparse:
		size *= 2
	}
	counts.Put(ctx, make([]float64, size))
	return nil
}

// affordable returns an error if the counts take too much memory.
func affordable(classes, features int) error {
	if bytes := 16 * float64(classes) * float64(features); bytes > maxCounts {
		return fmt.Errorf("the counts of %d classes and %d features take %.0f MB, at most %d MB are allowed: hash the features into fewer", classes, features, bytes/(1<<20), maxCounts>>20)
	}
	return nil
}

// count adds the rows of a shard to the sums of their classes. The first superstep adds
// weight·x, or for Bernoulli the weight for each feature that is present. The second superstep
// of Gaussian adds weight·t and weight·t² with t = x − mean.
func (q counting) count(ctx *comqueue.ComContext, shard int, out []float64) error {
	s := counted.Get(ctx)
	b := s.data.Block(shard)
	for i := range b.N {
		weight, c := 1.0, int(b.Label[i])
		if b.Weight != nil {
			weight = b.Weight[i]
		}
		var err error
		switch {
		case q.params.Family != Gaussian:
			err = q.countRow(s, b, i, weight, out[c*s.d:(c+1)*s.d])
		case s.means == nil:
			s.addRow(b, i, c, weight, out)
		default:
			s.spreadRow(b, i, c, weight, out)
		}
		if err != nil {
			return &engine.RowError{Row: int64(i), Err: err}
		}
	}
	return nil
}

// countRow adds the counts of a row to the counts of its class.
func (q counting) countRow(s *sums, b *rows.Block, i int, weight float64, out []float64) error {
	col, val := []int32(nil), []float64(nil)
	if q.table.Sparse {
		col, val = b.Sparse.Row(i)
	} else {
		val = b.Dense[i*b.D : (i+1)*b.D]
	}
	for j, v := range val {
		if col != nil {
			j = int(col[j])
		}
		switch {
		case q.params.Family == Bernoulli:
			if v > q.params.Binarize {
				out[j] += weight
			}
		case v < 0:
			return fmt.Errorf("feature %d is %v: the %v family counts, and takes numbers of 0 or more", s.feature(j), v, q.params.Family)
		default:
			out[j] += float64(weight * v)
		}
	}
	return nil
}

// feature returns the declared number of the feature with index j in the subtask's rows.
func (s *sums) feature(j int) int {
	if s.data.Facts.Columns != nil {
		return int(s.data.Facts.Columns[j])
	}
	return j
}

// addRow adds a row to the sums of its class, in the first superstep of Gaussian.
func (s *sums) addRow(b *rows.Block, i, c int, weight float64, out []float64) {
	if b.Dense != nil {
		kernel.Axpy(weight, b.Dense[i*s.d:(i+1)*s.d], out[c*s.d:(c+1)*s.d])
		return
	}
	own, present := out[c*s.d:(c+1)*s.d], out[(s.k+c)*s.d:(s.k+c+1)*s.d]
	col, val := b.Sparse.Row(i)
	for q, j := range col {
		own[j] += float64(weight * val[q])
		present[j] += weight
	}
}

// spreadRow adds the weighted differences between a row and the means of its class, and the
// weighted squares of these differences, to out.
func (s *sums) spreadRow(b *rows.Block, i, c int, weight float64, out []float64) {
	mean := s.means[c*s.d : (c+1)*s.d]
	rest, squares := out[c*s.d:(c+1)*s.d], out[(s.k+c)*s.d:(s.k+c+1)*s.d]
	if b.Dense != nil {
		x := b.Dense[i*s.d : (i+1)*s.d]
		for j, m := range mean {
			t := x[j] - m
			wt := float64(weight * t)
			rest[j] += wt
			squares[j] += float64(wt * t)
		}
		return
	}
	col, val := b.Sparse.Row(i)
	for q, j := range col {
		t := val[q] - mean[j]
		wt := float64(weight * t)
		rest[j] += wt
		squares[j] += float64(wt * t)
	}
}

// note stores the sums of the superstep. After the first superstep of Gaussian it computes the
// means of the classes.
func (q counting) note(ctx *comqueue.ComContext) error {
	s, sum := counted.Get(ctx), counts.Get(ctx)
	if i := kernel.NonFinite(sum); i >= 0 {
		return fmt.Errorf("feature %d: the values are so large that their sums exceed float64: scale them down", s.feature(i%s.d))
	}
	if ctx.TaskID() == 0 {
		latest.Put(ctx, 0, sum)
	}
	if q.params.Family != Gaussian || s.means != nil {
		return nil
	}
	first.Put(ctx, append([]float64(nil), sum...))
	q.takeFirst(s, sum)
	return nil
}

// takeFirst computes the means of the classes from the sums of the first superstep.
func (q counting) takeFirst(s *sums, sum []float64) {
	s.means = make([]float64, s.k*s.d)
	for c, w := range s.data.Facts.ClassWeights {
		for j := range s.d {
			s.means[c*s.d+j] = sum[c*s.d+j] / w
		}
	}
	if q.table.Sparse {
		s.present = append([]float64(nil), sum[s.k*s.d:]...)
	}
}

// finish returns the model of a completed fit.
func (q counting) finish(ctx *comqueue.ComContext) (model.Model, error) {
	if !counted.Has(ctx) { // this subtask did not run a superstep, it only closes the queue
		if err := q.preallocate(ctx); err != nil {
			return nil, err
		}
	}
	s, sum := counted.Get(ctx), latest.Get(ctx, 0)
	f := s.data.Facts
	m := &Model{
		Family: q.params.Family, Classes: Classes{Type: f.LabelType, Values: f.Classes}, Dim: f.Declared, Columns: f.Columns,
		Priors: s.priors, Weights: f.ClassWeights, Rows: f.Rows,
		PredictionCol: q.params.PredictionCol, ProbabilityCol: q.params.ProbabilityCol,
		columns: signature.InputsOf(q.params.VectorCol, q.params.FeatureCols, q.schema, f.Declared),
	}
	if m.Family != Gaussian {
		m.Smoothing, m.Binarize = q.params.Smoothing, q.params.Binarize
		m.Counts = matrix(sum, s.k, s.d)
		return m, nil
	}
	floor := q.params.VarSmoothing * largestVariance(f)
	if floor == 0 {
		floor = q.params.VarSmoothing
	}
	variances := make([]float64, s.k*s.d)
	for at := range variances {
		c := at / s.d
		w, mean, rest, squares := f.ClassWeights[c], s.means[at], sum[at], sum[s.k*s.d+at]
		if q.table.Sparse {
			if absent := w - s.present[at]; absent > 0 {
				rest -= float64(absent * mean)
				squares += float64(float64(absent*mean) * mean)
			}
		}
		shift := rest / w
		s.means[at] = mean + shift
		variances[at] = max(0, squares/w-float64(shift*shift)) + floor
	}
	m.Means, m.Variances = matrix(s.means, s.k, s.d), matrix(variances, s.k, s.d)
	return m, nil
}

// largestVariance returns the largest variance of a feature over all rows.
func largestVariance(f *rows.Facts) float64 {
	var top float64
	for _, std := range f.Std {
		top = max(top, std*std)
	}
	return top
}

// matrix returns copies of the k rows of d values in flat.
func matrix(flat []float64, k, d int) [][]float64 {
	rows := make([][]float64, k)
	for c := range rows {
		rows[c] = append(make([]float64, 0, d), flat[c*d:(c+1)*d]...)
	}
	return rows
}
