package optim_test

import (
	"encoding/json"
	"errors"
	"math"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
	"github.com/superstep-ml/superstep/shared"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var points = comqueue.PartitionedRows("points")

// objective is a sum over the rows of a table. The loss of a row is a function of its label and
// its margin. The margin is the inner product of parameters and features. Unless noIntercept is
// set, the last parameter is an intercept, which has no penalty.
type objective struct {
	table       trial.Table
	loss        func(m, y float64) (l, d, dd float64)
	can         ability
	noIntercept bool
	reads       *atomic.Int64 // counts rows read, if set
}

// ability tells which optional fields the objective sets in its Evaluator.
type ability int

const (
	everything ability = iota
	linearOnly
	curvedOnly
	sampledOnly
	nothing
)

func squared(m, y float64) (l, d, dd float64) { return (m - y) * (m - y) / 2, m - y, 1 }

// logistic is the loss for labels 0 and 1.
func logistic(m, y float64) (l, d, dd float64) {
	s := 2*y - 1
	z := s * m
	p := 1 / (1 + math.Exp(z))
	l = math.Log1p(math.Exp(-z))
	if z < -30 {
		l = -z
	}
	return l, -s * p, p * (1 - p)
}

// poisson is the loss for counts.
func poisson(m, y float64) (l, d, dd float64) {
	e := math.Exp(m)
	return e - y*m, e - y, e
}

func (o objective) parameters() int {
	if o.noIntercept {
		return o.table.D
	}
	return o.table.D + 1
}

func (o objective) totalWeight() float64 {
	if o.table.Weight == nil {
		return float64(o.table.N)
	}
	var sum float64
	for _, w := range o.table.Weight {
		sum += w
	}
	return sum
}

func (o objective) Open(ctx *comqueue.ComContext) (optim.Evaluator, error) {
	e := &evaluator{objective: o, rows: map[int][]row{}, factors: make([]float64, o.parameters())}
	for i := range o.table.D {
		e.factors[i] = 1
	}
	err := ctx.ForShards(func(shard int) error {
		f := points.Get(ctx, shard)
		x, y := f.Matrix("features"), f.Floats("label")
		for i := range x.Rows {
			r := row{x: x.Row(i)[:o.table.D], y: y[i], w: 1}
			if o.table.Weight != nil {
				r.w = f.Floats("weight")[i]
			}
			e.rows[shard] = append(e.rows[shard], r)
		}
		return nil
	})
	can := optim.Evaluator{Dim: o.parameters(), Weight: o.totalWeight(), PenaltyFactors: e.factors, Evaluate: e.Evaluate}
	if o.can == everything || o.can == linearOnly {
		can.Margins = optim.Margins{Start: e.Start, Direction: e.Direction, Trials: e.Trials, Gradient: e.Gradient, Advance: e.Advance}
		can.Snapshot = optim.Snapshot{Append: e.Append, Restore: e.Restore}
	}
	if o.can == everything || o.can == curvedOnly {
		can.Hessian = e.Hessian
	}
	if o.can == everything || o.can == sampledOnly {
		can.Minibatch = optim.Minibatch{Rows: e.Rows, Evaluate: e.EvaluateRows}
	}
	return can, err
}

// row is a row with its margins at the current point and along the direction.
type row struct {
	x          []float64
	y, w, m, q float64
}

type evaluator struct {
	objective
	rows    map[int][]row
	factors []float64
}

func (e *evaluator) margin(r *row, v []float64) float64 {
	var m float64
	for j, x := range r.x {
		m += x * v[j]
	}
	if !e.noIntercept {
		m += v[len(v)-1]
	}
	return m
}

// add adds the loss and the gradient of a row with margin m.
func (e *evaluator) add(r *row, m float64, out []float64) {
	l, d, _ := e.loss(m, r.y)
	out[0] += r.w * l
	for j, x := range r.x {
		out[1+j] += r.w * d * x
	}
	if !e.noIntercept {
		out[len(r.x)+1] += r.w * d
	}
}

func (e *evaluator) each(shard int, reads bool, f func(r *row)) error {
	rows := e.rows[shard]
	if len(rows) == 0 {
		return errors.New("a shard without rows is evaluated")
	}
	for i := range rows {
		f(&rows[i])
	}
	if reads && e.reads != nil {
		e.reads.Add(int64(len(rows)))
	}
	return nil
}

func (e *evaluator) Evaluate(shard int, v, out []float64) error {
	return e.each(shard, true, func(r *row) { e.add(r, e.margin(r, v), out) })
}

func (e *evaluator) Start(shard int, v, out []float64) error {
	return e.each(shard, true, func(r *row) {
		r.m = e.margin(r, v)
		e.add(r, r.m, out)
	})
}

func (e *evaluator) Direction(shard int, p []float64, step float64, out []float64) error {
	return e.each(shard, true, func(r *row) {
		r.q = e.margin(r, p)
		e.add(r, r.m+step*r.q, out)
	})
}

func (e *evaluator) Trials(shard int, steps, out []float64) error {
	return e.each(shard, false, func(r *row) {
		for i, t := range steps {
			l, d, _ := e.loss(r.m+t*r.q, r.y)
			out[2*i] += r.w * l
			out[2*i+1] += r.w * d * r.q
		}
	})
}

func (e *evaluator) Gradient(shard int, step float64, out []float64) error {
	return e.each(shard, true, func(r *row) { e.add(r, r.m+step*r.q, out) })
}

func (e *evaluator) Advance(shard int, step float64) error {
	return e.each(shard, false, func(r *row) { r.m += step * r.q })
}

func (e *evaluator) Append(shard int, dst []byte) ([]byte, error) {
	var margins []float64
	for _, r := range e.rows[shard] {
		margins = append(margins, r.m)
	}
	return shared.Float64s().Append(dst, margins)
}

func (e *evaluator) Restore(shard int, src []byte) error {
	margins, err := shared.Float64s().Decode(src)
	for i, m := range margins {
		e.rows[shard][i].m = m
	}
	return err
}

func (e *evaluator) Hessian(shard int, v, out []float64) error {
	n := e.parameters()
	h := out[1+n:]
	return e.each(shard, true, func(r *row) {
		m := e.margin(r, v)
		e.add(r, m, out)
		_, _, dd := e.loss(m, r.y)
		for i := range n {
			for j := range i + 1 {
				xi, xj := 1.0, 1.0
				if i < len(r.x) {
					xi = r.x[i]
				}
				if j < len(r.x) {
					xj = r.x[j]
				}
				h[i*(i+1)/2+j] += r.w * dd * xi * xj
			}
		}
	})
}

func (e *evaluator) Rows(shard int) int { return len(e.rows[shard]) }

func (e *evaluator) EvaluateRows(shard int, rows []int32, v, out []float64) error {
	for _, i := range rows {
		r := &e.rows[shard][i]
		e.add(r, e.margin(r, v), out[:1+e.parameters()])
		out[1+e.parameters()] += r.w
	}
	if e.reads != nil {
		e.reads.Add(int64(len(rows)))
	}
	return nil
}

// sum is an objective that adds up arbitrary terms, one per row of a table.
type sum struct {
	parameters int
	// term adds the gradient of a term to g and returns the term's value.
	term func(i int, v, g []float64) float64
	// curve adds the term's second derivatives to the packed triangle h. It may be nil.
	curve func(i int, v, h []float64)
	reads *atomic.Int64
}

func (s sum) Open(ctx *comqueue.ComContext) (optim.Evaluator, error) {
	e := &sumEvaluator{sum: s, ids: map[int][]int64{}, factors: make([]float64, s.parameters)}
	for i := range e.factors {
		e.factors[i] = 1
	}
	err := ctx.ForShards(func(shard int) error {
		e.ids[shard] = points.Get(ctx, shard).Ints("id")
		return nil
	})
	all := optim.Evaluator{Dim: s.parameters, Weight: 1, PenaltyFactors: e.factors, Evaluate: e.Evaluate}
	if s.curve != nil {
		all.Hessian = e.Hessian
	}
	return all, err
}

type sumEvaluator struct {
	sum
	ids     map[int][]int64
	factors []float64
}

func (e *sumEvaluator) Evaluate(shard int, v, out []float64) error {
	for _, id := range e.ids[shard] {
		out[0] += e.term(int(id), v, out[1:])
	}
	if e.reads != nil {
		e.reads.Add(int64(len(e.ids[shard])))
	}
	return nil
}

func (e *sumEvaluator) Hessian(shard int, v, out []float64) error {
	for _, id := range e.ids[shard] {
		e.curve(int(id), v, out[1+e.parameters:])
	}
	return e.Evaluate(shard, v, out[:1+e.parameters])
}

// text is the row that the Closer of the tests returns: the result as JSON, with all bits.
type text struct {
	Result string `column:"result"`
}

var asText = comqueue.Output(func(ctx *comqueue.ComContext) ([]text, error) {
	out, err := json.Marshal(optim.ResultOf(ctx))
	return []text{{string(out)}}, err
})

// build returns a function that adds to a job a minimisation of o over the rows of a table.
func build(table trial.Table, o optim.Objective, s optim.Settings) func(b *engine.Builder) {
	return func(b *engine.Builder) {
		rows := table.Dataset(b)
		engine.Collect(optim.Minimize(b, optim.Problem{
			Name: "minimize", Objective: o, Settings: s, Closer: asText,
			Init: func(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
				return q.InitWithPartitionedData(points, rows)
			},
		}), "result")
	}
}

// minimize runs a minimisation of o over the rows of a table and returns its result.
func minimize(t testing.TB, table trial.Table, o optim.Objective, s optim.Settings, options ...engine.Option) *optim.Result {
	t.Helper()
	return decode(t, trial.Run(t, build(table, o, s), options...))
}

// solve does what minimize does, for an objective over its own table.
func solve(t testing.TB, o objective, s optim.Settings, options ...engine.Option) *optim.Result {
	t.Helper()
	return minimize(t, o.table, o, s, options...)
}

func decode(t testing.TB, r *engine.Result) *optim.Result {
	t.Helper()
	batches, err := arrowbridge.Records(r, "result")
	require.NoError(t, err)
	require.Len(t, batches, 1)
	var result optim.Result
	require.NoError(t, json.Unmarshal([]byte(batches[0].Column(0).(*array.String).Value(0)), &result))
	return &result
}
