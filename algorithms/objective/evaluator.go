package objective

import (
	"context"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// evaluator evaluates a Linear objective on the rows of a subtask. It processes rows in chunks.
// A chunk stays in the cache while margins, losses and gradient are computed, so that features
// are read from memory only once. The size of chunks does not change any bit of the results.
type evaluator struct {
	scaling
	loss    Loss
	k       int     // number of margins of a row
	weight  float64 // total weight of all rows
	first   float64 // first intercept
	kinked  bool    // result of the method nearlyNonsmooth of the loss
	sparse  bool
	classes int // number of classes, 0 if labels are not classes

	context context.Context // context of the job; nil if the job cannot be cancelled
	lo      int
	total   int // number of shards of all subtasks
	shards  []*shardRows
	longest int // number of rows of the longest chunk

	beta, add []float64 // coefficients and addends of a point or a direction
	zero      bool      // all coefficients are 0, as at the start of training, so their products with rows are 0
	ordered   bool      // see order
	of        *float64  // the first element of v in the last call of point
	latest    int       // number of the shard in the last call of point
	width     int       // number of columns of the current rows: d, or the columns of a narrow shard
	perClass  classWork
	packed    *kernel.Packed
	part      rows.Block // the current chunk
	batch     Batch      // buffers for the loss of a chunk
	margin    []float64  // buffer for the margins of a chunk
	narrow    []float64  // buffer for the margins with coefficients, if there are also constants
	coef      []float64  // buffer for weighted slopes
	pull      []float64  // factors of the rows of a chunk in the gradient: weighted slopes
	single    []float64  // buffer for the factors of a chunk for one of several margins
	raw       []float64  // Margins×d sums of factors times features, see outer
	folds     bool       // whether the shards are narrow, see narrow.go
	trees     []*tree    // data for adding up the sums of narrow shards, see foldNarrow
	wide      wideWork   // data for adding up the sums of shards that are not narrow
	sums      []float64  // k sums of pull
	curve     []float64  // buffer for curvatures
	hessian   hessianWork
	sample    sampleWork
	probe     probeWork
	byRow     foldRowsWork
}

// shardRows has the rows of a shard, and what the evaluator stores for each of them.
type shardRows struct {
	*rows.Block
	number int       // number of the shard
	weight []float64 // weights of rows times class weights; nil if all are 1
	chunk  int       // rows per chunk
	read   int       // rows per chunk in passes that read all rows
	m, q   []float64 // margins at the current point and of the direction, N×k
	prox   []float64 // multipliers of a Smooth loss; nil as long as all are 0
	next   []float64 // multipliers that bound computed; refine moves them to prox
	mu     float64   // μ of a Smooth loss; 0 before the first call of refine
	kept   []float64 // for a narrow shard: the result of its last pass, see finishNarrow
	probed *probed   // nil if no margins are stored
}

// evaluator returns an evaluator without rows.
func (l Linear) evaluator(f *rows.Facts) (*evaluator, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	s, err := l.scaling(f)
	if err != nil {
		return nil, err
	}
	weight, err := l.Weight(f)
	if err != nil {
		return nil, err
	}
	e := &evaluator{scaling: s, loss: l.Loss, k: s.Total(), weight: weight, sparse: l.Table.Sparse}
	e.first = -f.OffsetMean
	if l, ok := l.Loss.(beginning); ok {
		e.first += l.begin(f)
	}
	if l, ok := l.Loss.(nearlyNonsmooth); ok {
		e.kinked = l.nearlyNonsmooth(f)
	}
	if l.Loss.Label() == rows.ClassLabel {
		e.classes = len(f.Classes)
	}
	e.add, e.sums = make([]float64, e.k), make([]float64, e.k)
	if s.Margins > 1 && !l.Table.Sparse {
		e.packed = kernel.NewPacked(s.Margins, s.d)
		e.raw = make([]float64, s.Margins*s.d)
	}
	return e, nil
}

// grow allocates buffers for chunks of n rows, unless there are buffers for as many rows.
func (e *evaluator) grow(n int) {
	if n <= len(e.batch.Loss) {
		return
	}
	e.batch.Loss = make([]float64, n)
	e.batch.Slope = make([]float64, n*e.k)
	e.batch.Work = make([]float64, n*e.k)
	e.margin = make([]float64, n*e.k)
	e.coef = make([]float64, n*e.k)
	e.single = make([]float64, n)
	if e.k > e.Margins {
		e.narrow = make([]float64, n*e.Margins)
	}
}

// functions returns the optim.Evaluator whose functions are methods of e.
func (e *evaluator) functions() optim.Evaluator {
	f := optim.Evaluator{
		Dim: e.parameters(), Weight: e.weight, PenaltyFactors: e.factors(), Evaluate: e.evaluate,
		Initial: e.initial(), GradientUnit: 1, NewtonUpTo: e.newtonUpTo(), HessianCost: e.hessianCost(), NearlyNonsmooth: e.kinked,
		Hessian:   e.evaluate,
		Margins:   optim.Margins{Start: e.start, Direction: e.direction, Trials: e.trials, Gradient: e.gradient, Advance: e.advance, Hessian: true},
		Subspace:  optim.Subspace{Hessian: e.subspaceHessian, Slopes: e.subspaceSlopes},
		Minibatch: optim.Minibatch{Rows: e.rowCount, Evaluate: e.evaluateRows, Fold: e.foldRows},
		Snapshot:  optim.Snapshot{Append: e.appendSnapshot, Restore: e.restoreSnapshot},
		Ordered:   e.order,
	}
	if e.Unit > 0 {
		f.GradientUnit = e.Unit
	}
	if len(e.shards) <= mostFolded {
		f.Fold = e.fold
	}
	if _, ok := e.loss.(Smooth); ok {
		f.Smoothing = optim.Smoothing{BoundLen: e.boundLen(), Bound: e.bound, Gap: e.gap, Refine: e.refine}
	}
	return f
}

// initial returns the first parameters; nil means zeros. For a loss with one margin that has an
// intercept, all of them are zeros except the intercept.
func (e *evaluator) initial() []float64 {
	if !e.intercept || e.Margins != 1 || !kernel.Finite(e.first) {
		return nil
	}
	v := make([]float64, e.parameters())
	v[e.d] = e.first
	return v
}

// newtonUpTo returns the largest number of parameters for which Newton's method is assumed to
// be faster than LBFGS.
//
// With one margin this is 32. With several margins, LBFGS needs at least three times as many
// iterations as Newton's method if neighbouring features have a correlation of 0.5. A read of
// second derivatives takes about twice as long as a read of gradients, if rows fill vector
// registers. With 36 to 64 parameters, 3 to 8 classes and 50,000 rows of such features,
// Newton's method came within 1e-6 of the optimum in 0.2 to 0.95 of the time of LBFGS. If
// features did not correlate at all, it took 1.1 to 1.7 times as long as LBFGS.
func (e *evaluator) newtonUpTo() int {
	if dense := e.packed != nil; dense && e.stride() >= registers {
		return 64
	}
	return 32
}

// hessianCost returns the cost of a read with second derivatives, divided by the cost of a read
// without them. For dense rows with one margin and 50 features, a read with second derivatives
// takes three to four times as long, and the additional time grows in proportion to the number
// of features. Sparse rows are made dense for a read with second derivatives; one in ten of
// their features is assumed to be present.
func (e *evaluator) hessianCost() float64 {
	longer := float64(e.stride()*(e.Margins+1)) / 40
	if e.sparse {
		longer *= 5
	}
	return 1 + longer
}

// registers is the smallest number of features, including the intercept, for which the products
// of pairs of a row's features fill vector registers.
const registers = 8

// at returns the rows of a shard.
func (e *evaluator) at(shard int) *shardRows { return e.shards[shard-e.lo] }

// evaluate implements Evaluate and Hessian of optim.Evaluator.
func (e *evaluator) evaluate(shard int, v, out []float64) error {
	s := e.at(shard)
	e.point(s, v)
	return e.pass(s, atPoint, 0, out)
}

// source says how a pass computes the margins of rows.
type source int

const (
	atPoint source = iota // margins at the parameters that evaluate was given
	atStart               // like atPoint; the margins are also stored as the current margins
	onRay                 // current margins plus step times the margins of the direction, which are computed and stored
	onStep                // current margins plus step times the stored margins of the direction
)

// pass adds loss and gradient of the rows of a shard to out. It also adds second derivatives if
// out is long enough for them.
func (e *evaluator) pass(s *shardRows, from source, step float64, out []float64) error {
	if len(out) > 1+e.parameters() {
		return e.hessianPass(s, from, step, out)
	}
	sum := e.begin(s, out)
	part := &e.part
	same := e.sameMargin(s, from)
	for lo := 0; lo < s.N; lo += s.read {
		if err := e.interrupted(); err != nil {
			return err
		}
		s.Cut(part, lo, min(lo+s.read, s.N))
		if m := e.marginsFrom(s, part, lo, from, step); same {
			e.lossByClass(part)
		} else {
			e.lossAt(s, part, lo, m)
		}
		sum.loss = e.addLoss(s, lo, part.N, sum.loss)
		e.addGradient(part, &sum)
	}
	e.finish(s, sum, out)
	return nil
}

// marginsFrom returns the margins of the rows in part, computed as the parameter from says. The
// first row of part is row lo of the shard.
func (e *evaluator) marginsFrom(s *shardRows, part *rows.Block, lo int, from source, step float64) []float64 {
	switch from {
	case atStart:
		m := s.m[lo*e.k : (lo+part.N)*e.k]
		e.margins(part, part.Offset, m)
		return m
	case onRay:
		e.margins(part, nil, s.q[lo*e.k:(lo+part.N)*e.k])
		return e.moved(s, lo, part.N, step)
	case onStep:
		return e.moved(s, lo, part.N, step)
	}
	m := e.margin[:part.N*e.k]
	e.margins(part, part.Offset, m)
	return m
}

// interrupted returns an error if the job is cancelled. It is called once per chunk, because
// with many margins a pass over the rows of a shard may take long.
func (e *evaluator) interrupted() error {
	if e.context == nil || e.context.Err() == nil {
		return nil
	}
	return context.Cause(e.context)
}

// margins writes to m the margins of the rows of b, including offsets, at the parameters for
// which point was called.
func (e *evaluator) margins(b *rows.Block, offset, m []float64) {
	n := b.N
	switch {
	case e.k == 1:
		e.products(b, m)
		e.addTo(m, offset)
		return
	case e.k == e.Margins:
		e.products(b, m)
	default:
		narrow := e.narrow[:n*e.Margins]
		e.products(b, narrow)
		for i := range n {
			copy(m[i*e.k:], narrow[i*e.Margins:(i+1)*e.Margins])
			clear(m[i*e.k+e.Margins : (i+1)*e.k])
		}
	}
	for i := range n {
		row := m[i*e.k : (i+1)*e.k]
		for a, add := range e.add {
			row[a] += add
		}
		if offset != nil {
			row[0] += offset[i]
		}
	}
}

// addTo adds intercept and offsets to the products m of rows with the coefficients of the only
// margin.
func (e *evaluator) addTo(m, offset []float64) {
	add := e.add[0]
	if offset == nil {
		if add == 0 {
			return // nothing to add; products are never −0
		}
		for i := range m {
			m[i] += add
		}
		return
	}
	for i := range m {
		m[i] = (m[i] + add) + offset[i]
	}
}

// products writes to m the products of the rows of b with the coefficients of all margins.
func (e *evaluator) products(b *rows.Block, m []float64) {
	switch {
	case e.zero:
		clear(m)
	case b.Dense != nil && e.packed != nil:
		kernel.MulRows(b.Dense, b.N, e.packed, m)
	case b.Dense != nil:
		kernel.DotRows(b.Dense, b.N, b.D, e.beta, m)
	case e.Margins == 1:
		kernel.DotCSR(b.Sparse, e.beta, m)
	default:
		single := e.single[:b.N]
		for a := range e.Margins {
			kernel.DotCSR(b.Sparse, e.beta[a*e.width:(a+1)*e.width], single)
			for i, v := range single {
				m[i*e.Margins+a] = v
			}
		}
	}
}

// lossAt evaluates the loss of the rows of b at the margins m. The first row of b is row lo of
// the shard.
func (e *evaluator) lossAt(s *shardRows, b *rows.Block, lo int, m []float64) *Batch {
	t := &e.batch
	t.N, t.K, t.Label, t.Censor, t.Margin = b.N, e.k, b.Label, b.Censor, m
	t.Prox, t.Mu = nil, s.mu
	if s.prox != nil {
		t.Prox = s.prox[lo : lo+b.N]
	}
	e.loss.At(t)
	return t
}
