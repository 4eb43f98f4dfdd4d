package optim

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// Minimum is the row that MinimizeRows returns.
type Minimum struct {
	Parameters []float64
	Loss       float64 // the objective at Parameters, penalty included
	Iterations int64
	Reads      float64 // total number of times that the rows were read
	Converged  bool
	Reason     string // why training ended, see Reason
}

// MinimizeRows adds a queue that minimises the mean of loss over the rows of a dataset. It
// returns a dataset with one Minimum. loss is a function of a row and of n parameters.
// MinimizeRows is a simpler alternative to Minimize, which also supports weights of rows,
// parameters without a penalty, losses that are linear in parameters, and second derivatives.
//
// loss adds its derivatives to grad, which has n numbers. It must depend on its arguments
// alone. loss must neither retain row, with its strings and slices, nor modify w. In sums of
// products, loss should convert each product, as in float64(x*y): the conversion keeps
// processors from fusing multiplication and addition, so that the bits are the same on all
// processors. Rows are read again in each pass and not copied, so the dataset may be larger
// than memory.
//
// By default the method is L-BFGS. Settings may name another method except Newton, which needs
// second derivatives.
func MinimizeRows[R any](d *engine.Dataset, n int, loss func(row R, w, grad []float64) float64, s Settings) *engine.Dataset {
	const op = "MinimizeRows"
	b := model.BuilderOf(op, d)
	fail := func(format string, a ...any) *engine.Dataset {
		b.Errorf("%s: %w", op, fmt.Errorf(format, a...))
		return b.Poisoned(op)
	}
	switch {
	case d.Poisoned():
		return d
	case n < 1:
		return fail("there are %d parameters", n)
	case loss == nil:
		return fail("the function is nil")
	case s.Method == Newton:
		return fail("the method newton needs second derivatives, which the function does not give")
	case s.Start != nil && len(s.Start) != n:
		return fail("Settings.Start has %d parameters, and there are %d", len(s.Start), n)
	}
	rows, count := comqueue.PartitionedRows("rows"), comqueue.BroadcastRows("count")
	o := rowsObjective[R]{rows: comqueue.RowsAs[R](rows), total: count.Ints("count"), n: n, loss: loss}
	return Minimize(b, Problem{
		Name: "minimize rows",
		Init: func(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
			return q.InitWithPartitionedData(rows, d).InitWithBroadcastData(count, operators.Count(d))
		},
		Objective: o,
		Settings:  s,
		Closer: comqueue.Output(func(ctx *comqueue.ComContext) ([]Minimum, error) {
			r := ResultOf(ctx)
			return []Minimum{{r.Parameters, r.Loss, int64(r.Iterations), r.Reads, r.Converged, string(r.Reason)}}, nil
		}),
	})
}

// rowsObjective is the objective of MinimizeRows.
type rowsObjective[R any] struct {
	rows  comqueue.ShardRows[R]
	total comqueue.BroadcastColumn[[]int64]
	n     int
	loss  func(row R, w, grad []float64) float64
}

func (o rowsObjective[R]) Open(ctx *comqueue.ComContext) (Evaluator, error) {
	rows := o.total.Get(ctx)[0]
	if rows == 0 {
		return Evaluator{}, fmt.Errorf("there are no rows")
	}
	e := &rowsEvaluator[R]{rowsObjective: o, reader: map[int]*comqueue.RowReader[R]{}}
	factors := make([]float64, o.n)
	for i := range factors {
		factors[i] = 1
	}
	err := ctx.ForShards(func(shard int) (err error) {
		e.reader[shard], err = o.rows.Reader(ctx, shard)
		return err
	})
	return Evaluator{
		Dim: o.n, Weight: float64(rows), PenaltyFactors: factors, Evaluate: e.evaluate,
		Minibatch: Minibatch{Rows: e.count, Evaluate: e.evaluateSome},
	}, err
}

// rowsEvaluator reads the rows of a subtask one by one.
type rowsEvaluator[R any] struct {
	rowsObjective[R]
	reader map[int]*comqueue.RowReader[R] // shard -> reader of its rows
	row    R
}

func (e *rowsEvaluator[R]) count(shard int) int {
	if r := e.reader[shard]; r != nil {
		return r.Len()
	}
	return 0
}

func (e *rowsEvaluator[R]) evaluate(shard int, v, out []float64) error {
	r := e.reader[shard]
	for i := range r.Len() {
		if err := e.add(r, shard, i, v, out); err != nil {
			return err
		}
	}
	return nil
}

func (e *rowsEvaluator[R]) evaluateSome(shard int, rows []int32, v, out []float64) error {
	r := e.reader[shard]
	for _, i := range rows {
		if err := e.add(r, shard, int(i), v, out); err != nil {
			return err
		}
	}
	out[1+e.n] += float64(len(rows))
	return nil
}

func (e *rowsEvaluator[R]) add(r *comqueue.RowReader[R], shard, i int, v, out []float64) error {
	if err := r.Read(i, &e.row); err != nil {
		return &engine.RowError{Row: int64(i), Of: &engine.RowsOf{Shard: shard}, Err: err}
	}
	out[0] += e.loss(e.row, v[:e.n:e.n], out[1:1+e.n:1+e.n])
	return nil
}
