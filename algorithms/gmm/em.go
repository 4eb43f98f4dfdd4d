package gmm

import (
	"errors"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// A superstep of the queue is an iteration of EM:
//
//	preallocate  once, and on a subtask that joins later: views of the rows, scratch memory
//	expect       per shard: the log-likelihood and the moments of each component
//	AllReduce
//	maximise     compute the next weights, means and covariances, or end training
//
// The moments of component c are Σ r, Σ r·t and the lower triangle of Σ r·t·tᵀ (its diagonal
// only, for Diagonal and Spherical; the sum over all components, for Tied), where r is the
// row's weight times the probability of c and t = x − mean of c. In the first superstep r comes
// from the initial assignment of rows to components, unless training begins from a mixture.
//
// The last superstep evaluates the mixture without changing it.

// Objects of the queue.
var (
	clusters = comqueue.BroadcastRows("clusters")
	fitted   = shared.Replicated("mixture", shared.Float64s())
	progress = shared.Replicated("progress", shared.Msgpack[*state]())
	moments  = shared.Scratch[[]float64]("moments")
	fitting  = shared.Scratch[*fit]("fit")
)

// state is the progress of training. It is the same on every subtask.
type state struct {
	Assigning bool // whether the superstep computes the first mixture from the initial assignment
	Updates   int
	Stop      bool
	Converged bool
	Record    []float64 // mean log-likelihood before each update, and after the last one
}

// fit is the state of a training on a subtask.
type fit struct {
	data *rows.Data
	mix  *mixture
	work *work
	gram kernel.Gram
	r    []float64 // weight times probability of one component, for the rows of a chunk
	near *kernel.Centers
	hard []int32 // initial components of the rows of a chunk
	dist []float64
}

// em has the parameters of a training queue. Its methods are the stages of the queue.
type em struct {
	params Params
	table  rows.Table
	schema *arrow.Schema // schema of the points
}

func (q em) preallocate(ctx *comqueue.ComContext) error {
	if fitting.Has(ctx) {
		return nil
	}
	data, err := q.table.Open(ctx)
	if err != nil {
		return err
	}
	d, k := data.Facts.Dim(), q.params.K
	if d == 0 {
		return errors.New("the vectors have no components")
	}
	if err := q.params.affordable(d); err != nil {
		return err
	}
	f := &fit{data: data, mix: newMixture(q.params.Covariance, k, d), work: newWork(chunk, k, d), r: make([]float64, chunk), hard: make([]int32, chunk), dist: make([]float64, chunk)}
	if values, ok := fitted.Lookup(ctx); ok { // the subtask joins a training
		copy(f.mix.values, values)
		err = f.mix.prepare()
	} else {
		progress.Put(ctx, &state{Assigning: q.params.Start == nil, Record: make([]float64, 0, min(q.params.MaxIter+1, 1<<12))})
		err = q.begin(ctx, f)
	}
	if err != nil {
		return err
	}
	fitting.Put(ctx, f)
	fitted.Put(ctx, f.mix.values)
	moments.Put(ctx, make([]float64, 1+k*(1+d)+f.mix.shapes()*q.second(d)))
	return nil
}

// second returns the number of second moments per component.
func (q em) second(d int) int {
	if q.params.Covariance == Spherical {
		return d
	}
	return q.params.Covariance.size(d)
}

// begin sets the means about which the first moments are taken. With a Start it sets the whole
// mixture.
func (q em) begin(ctx *comqueue.ComContext, f *fit) error {
	d := f.mix.d
	switch {
	case q.params.Start != nil:
		q.params.Start.fill(f.mix)
		return f.mix.prepare()
	case q.params.ComponentCol != "":
		for c := range f.mix.k {
			copy(f.mix.means[c*d:], f.data.Facts.Mean)
		}
		return nil
	}
	centers := q.params.Means
	if centers == nil {
		file, err := model.FileIn(clusters.Get(ctx).Batch())
		if err != nil {
			return err
		}
		m, err := kmeans.Decode(file)
		if err != nil {
			return err
		}
		centers = m.Centers
	}
	for c, mean := range centers {
		if len(mean) != d {
			return fmt.Errorf("the points have %d components, the first means have %d", d, len(mean))
		}
		copy(f.mix.means[c*d:], mean)
	}
	f.near = kernel.NewCenters(f.mix.k, d)
	f.near.Set(f.mix.means)
	return nil
}

// expect adds the log-likelihood and the moments of a shard's rows to out.
func (q em) expect(ctx *comqueue.ComContext, shard int, out []float64) error {
	f, s := fitting.Get(ctx), progress.Get(ctx)
	b := f.data.Block(shard)
	for lo := 0; lo < b.N; lo += chunk {
		part := b.Rows(lo, min(lo+chunk, b.N))
		if s.Assigning {
			if err := f.assign(&part, lo); err != nil {
				return fmt.Errorf("column %q: %w", q.params.ComponentCol, err)
			}
		} else if err := f.expectRows(&part, lo, out); err != nil {
			return err
		}
		f.addMoments(&part, out)
	}
	return nil
}

// assign writes to f.work.log, for each row of a chunk, 1 for its initial component and 0 for
// the other components.
func (f *fit) assign(b *rows.Block, first int) error {
	k := f.mix.k
	if f.near != nil {
		clear(f.hard)
		kernel.AssignEuclidean(b.Dense, b.N, f.near, f.hard, f.dist)
	}
	for i := range b.N {
		if f.near == nil {
			v := b.Label[i]
			if v != math.Trunc(v) || v < 0 || v >= float64(k) {
				return &engine.RowError{Row: int64(first + i), Err: fmt.Errorf("the component is %v: want an integer from 0 to %d", v, k-1)}
			}
			f.hard[i] = int32(v)
		}
		row := f.work.log[i*k : (i+1)*k]
		clear(row)
		row[f.hard[i]] = 1
	}
	return nil
}

// expectRows computes the probabilities of a chunk's rows and adds their log-likelihood to out.
func (f *fit) expectRows(b *rows.Block, first int, out []float64) error {
	k := f.mix.k
	f.mix.densities(b.Dense, b.N, f.work)
	for i := range b.N {
		log := posterior(f.work.log[i*k : (i+1)*k])
		if !kernel.Finite(log) {
			return &engine.RowError{Row: int64(first + i), Err: fmt.Errorf("its log-density is %v: it is too far from every component for float64: scale the features, or leave such rows out", log)}
		}
		if b.Weight != nil {
			log *= b.Weight[i]
		}
		out[0] += log
	}
	return nil
}

// addMoments adds the moments of a chunk's rows to out, given the probabilities in f.work.log.
func (f *fit) addMoments(b *rows.Block, out []float64) {
	m, d, k := f.mix, f.mix.d, f.mix.k
	seconds := out[1+k*(1+d):]
	size := len(seconds) / m.shapes()
	for c := range k {
		sums := out[1+c*(1+d) : 1+(c+1)*(1+d)]
		r := f.r[:b.N]
		for i := range r {
			r[i] = f.work.log[i*k+c]
			if b.Weight != nil {
				r[i] *= b.Weight[i]
			}
			sums[0] += r[i]
		}
		m.shifted(b.Dense, b.N, c, f.work.t)
		kernel.AddScaledRows(f.work.t, b.N, d, r, sums[1:])
		at := min(c, m.shapes()-1)
		second := seconds[at*size : (at+1)*size]
		if m.whiten != nil {
			f.gram.AddRows(f.work.t, b.N, d, r, second)
			continue
		}
		for i, v := range f.work.t[:b.N*d] {
			f.work.y[i] = v * v
		}
		kernel.AddScaledRows(f.work.y, b.N, d, r, second)
	}
}

// maximise computes the next mixture from the reduced moments, unless training ends.
func (q em) maximise(ctx *comqueue.ComContext) error {
	f, s, sums := fitting.Get(ctx), progress.Get(ctx), moments.Get(ctx)
	weight := f.data.Facts.Weight
	if s.Assigning {
		s.Assigning = false
		if err := f.full(sums); err != nil {
			return err
		}
		return q.update(f, sums, weight)
	}
	mean := sums[0] / weight
	if !kernel.Finite(mean) {
		return fmt.Errorf("the log-likelihood is %v: scale the features down", mean)
	}
	if n := len(s.Record); n > 0 {
		s.Converged = mean-s.Record[n-1] <= q.params.Tol
	}
	s.Record = append(s.Record, mean)
	ctx.Report("log-likelihood", mean)
	if s.Converged || s.Updates == q.params.MaxIter {
		s.Stop = true
		return nil
	}
	s.Updates++
	return q.update(f, sums, weight)
}

// full returns an error if a component has no rows at the beginning.
func (f *fit) full(sums []float64) error {
	for c := range f.mix.k {
		if !(sums[1+c*(1+f.mix.d)] > 0) {
			return fmt.Errorf("component %d begins without rows of positive weight: lower K, or begin with other components", c)
		}
	}
	return nil
}

// update is the M step. It computes weights, means and covariances from the moments about the
// means.
func (q em) update(f *fit, sums []float64, total float64) error {
	m, d, k := f.mix, f.mix.d, f.mix.k
	seconds := sums[1+k*(1+d):]
	if q.params.Covariance == Tied {
		for i := range m.covariances {
			m.covariances[i] = seconds[i] / total
		}
	}
	for c := range k {
		own := sums[1+c*(1+d) : 1+(c+1)*(1+d)]
		r, shift := own[0], own[1:]
		m.weights[c] = r / total
		if r <= 0x1p-49*total {
			m.weights[c] = 0
			continue
		}
		for j := range shift {
			shift[j] /= r
			m.means[c*d+j] += shift[j]
		}
		size := len(seconds) / m.shapes()
		if q.params.Covariance == Tied {
			subtractOuter(shift, r/total, m.covariances)
			continue
		}
		m.shape.covarianceOf(seconds[c*size:(c+1)*size], shift, r, m.covariance(c))
		q.regularize(m.covariance(c), d)
	}
	if q.params.Covariance == Tied {
		q.regularize(m.covariances, d)
	}
	return m.prepare()
}

// covarianceOf writes the covariance of a component of weight r to cov. second has the
// component's second moments about a point, and shift is the component's mean minus that point.
func (shape Covariance) covarianceOf(second, shift []float64, r float64, cov []float64) {
	switch shape {
	case Diagonal:
		for j, s := range shift {
			cov[j] = max(0, second[j]/r-float64(s*s))
		}
	case Spherical:
		var sum float64
		for j, s := range shift {
			sum += max(0, second[j]/r-float64(s*s))
		}
		cov[0] = sum / float64(len(shift))
	default:
		for i := range cov {
			cov[i] = second[i] / r
		}
		subtractOuter(shift, 1, cov)
	}
}

// subtractOuter subtracts factor·v·vᵀ from the lower triangle cov.
func subtractOuter(v []float64, factor float64, cov []float64) {
	at := 0
	for i, a := range v {
		a *= factor
		for _, b := range v[:i+1] {
			cov[at] -= float64(a * b)
			at++
		}
	}
}

// regularize adds Regularization to the variances of a covariance.
func (q em) regularize(cov []float64, d int) {
	if q.params.Covariance == Diagonal || q.params.Covariance == Spherical {
		for j := range cov {
			cov[j] += q.params.Regularization
		}
		return
	}
	for j := range d {
		cov[triangle(j)+j] += q.params.Regularization
	}
}

// done reports whether training has ended. It is the stop criterion of the queue.
func (q em) done(ctx *comqueue.ComContext) (bool, error) { return progress.Get(ctx).Stop, nil }

// output returns the model.
func (q em) output(ctx *comqueue.ComContext) (model.Model, error) {
	if err := q.preallocate(ctx); err != nil { // for a subtask that joined to close the queue
		return nil, err
	}
	f, s := fitting.Get(ctx), progress.Get(ctx)
	facts := f.data.Facts
	mean := s.Record[len(s.Record)-1]
	m := &Model{
		Covariance: q.params.Covariance, Dim: facts.Dim(), Weights: f.mix.weights,
		LogLikelihood: mean * facts.Weight, Rows: facts.Rows, Weight: facts.Weight,
		Iterations: s.Updates, Converged: s.Converged, Record: s.Record,
		PredictionCol: q.params.PredictionCol, ProbabilityCol: q.params.ProbabilityCol,
		columns: signature.InputsOf(q.params.VectorCol, q.params.FeatureCols, q.schema, facts.Dim()),
	}
	m.take(f.mix)
	return m, nil
}
