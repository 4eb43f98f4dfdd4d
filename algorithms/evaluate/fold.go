package evaluate

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/shared"
)

// An evaluation has two kinds of operators. For each pass over the rows there is a
// foldOperator, which folds the rows of each subtask into a state. The reporter, with one
// subtask, merges the states and writes the report. States consist of exact sums, counts and
// extremes, so they do not depend on the order of the rows or on their distribution over
// shards. The functions on slices fill a single state and therefore return the same bits.

// stateRow is the row by which operators exchange a state.
type stateRow struct {
	Shard int64  `column:"shard"`
	State []byte `column:"state"`
}

// readStates calls each with every state of a batch.
func readStates[S any](rec arrow.Record, each func(shard int, state *S)) error {
	shards, states := rec.Column(0).(*array.Int64), rec.Column(1).(*array.Binary)
	for i := range states.Len() {
		one, err := shared.Msgpack[S]().Decode(states.Value(i))
		if err != nil {
			return fmt.Errorf("read a partial evaluation: %w", err)
		}
		each(int(shards.Value(i)), &one)
	}
	return nil
}

// foldSpec says how rows are folded into states of type S.
type foldSpec[S any] struct {
	op string
	in table
	// sides are side inputs. open reads them as Side(1), Side(2) and so on of the context.
	sides []*engine.Dataset
	open  func(c *engine.Context, s *S) error // prepares a state; may be nil
	// add adds a batch of the table's columns that has no missing values.
	add func(s *S, rows arrow.Record) error
	// perShard makes one state for every shard that has rows. Otherwise every subtask makes one
	// state, even if it has no rows.
	perShard bool
}

// fold adds the operator and returns the dataset of states.
func (f foldSpec[S]) fold(rows *engine.Dataset) *engine.Dataset {
	inputs := []engine.Port{{From: rows}}
	for _, side := range f.sides {
		inputs = append(inputs, engine.Port{From: side, Partitioner: engine.Broadcast, Side: true})
	}
	return rows.Builder().Add(engine.Spec{
		Op:       f.op,
		Attrs:    f.in.attrs(),
		Schema:   arrowrows.SchemaOf[stateRow](),
		Inputs:   inputs,
		Operator: func() engine.Operator { return &foldOperator[S]{foldSpec: f} },
	})
}

// foldOperator executes a foldSpec on one subtask.
type foldOperator[S any] struct {
	engine.BaseOperator
	foldSpec[S]
	state *S
	row   int // number of the next row in the current shard
	used  bool
}

func (o *foldOperator[S]) Open(c *engine.Context) error { return o.renew(c) }

func (o *foldOperator[S]) renew(c *engine.Context) error {
	o.state = new(S)
	if o.open == nil {
		return nil
	}
	return o.open(c, o.state)
}

func (o *foldOperator[S]) Process(c *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	clean, err := o.in.validRows(c, rows, o.row)
	if err != nil {
		return err
	}
	defer clean.Release()
	before := o.row
	o.row += int(rows.NumRows())
	if clean.NumRows() == 0 {
		return nil
	}
	o.used = true
	return o.in.place(o.add(o.state, clean), before)
}

func (o *foldOperator[S]) EndShard(c *engine.Context, shard int, out engine.Output) error {
	used := o.used
	o.row, o.used = 0, false
	if !o.perShard || !used {
		return nil
	}
	if err := emitState(c, shard, o.state, out); err != nil {
		return err
	}
	return o.renew(c)
}

func (o *foldOperator[S]) Finish(c *engine.Context, out engine.Output) error {
	if o.perShard {
		return nil
	}
	return emitState(c, c.Range.Hi-1, o.state, out)
}

func emitState[S any](c *engine.Context, shard int, s *S, out engine.Output) error {
	text, err := shared.Msgpack[S]().Append(nil, *s)
	if err != nil {
		return err
	}
	return arrowrows.Emit(c.Allocator, out, shard, []stateRow{{int64(shard), text}})
}

// reporting says how states become a report of type R, which is a struct.
type reporting[S, R any] struct {
	op     string
	attrs  []engine.Attr
	merge  func(s, o *S)
	report func(s *S) (*R, error)
}

// finish adds the operator that merges states and returns the dataset of the report.
func (f reporting[S, R]) finish(states *engine.Dataset) *engine.Dataset {
	schema := reportSchema[R]()
	return states.Builder().Add(engine.Spec{
		Op:       f.op,
		Attrs:    f.attrs,
		Schema:   arrowrows.Schema(schema),
		Inputs:   []engine.Port{{From: states}},
		Single:   true,
		Operator: func() engine.Operator { return &reporter[S, R]{reporting: f, schema: schema, state: new(S)} },
	})
}

// reporter executes a reporting.
type reporter[S, R any] struct {
	engine.BaseOperator
	reporting[S, R]
	schema *arrow.Schema
	state  *S
}

func (o *reporter[S, R]) Process(_ *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	return readStates(rows, func(_ int, s *S) { o.merge(o.state, s) })
}

func (o *reporter[S, R]) Finish(c *engine.Context, out engine.Output) error {
	report, err := o.report(o.state)
	if err != nil {
		return err
	}
	rec, err := reportRecord(c.Allocator, o.schema, report)
	if err != nil {
		return err
	}
	defer rec.Release()
	return out.Emit(c.Range.Hi-1, arrowrows.Batch(rec))
}

// begin checks the rows, options and columns of an evaluation. If any of them is invalid, it
// returns false and the dataset that the evaluation must return to its caller.
func begin(op string, rows *engine.Dataset, invalid error, t *table) (*engine.Dataset, bool) {
	b := model.BuilderOf(op, rows)
	if rows.Poisoned() {
		return rows, false
	}
	if invalid == nil {
		invalid = t.bind(arrowrows.Arrow(rows.Schema()))
	}
	if invalid != nil {
		return model.Refuse(b, op, invalid), false
	}
	return nil, true
}
