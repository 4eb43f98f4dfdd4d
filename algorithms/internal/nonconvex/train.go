package nonconvex

import (
	"cmp"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Training describes the training that an estimator adds to a job.
type Training struct {
	Op     string // name of the training in messages, such as "fm.Train"
	Queue  string // name of the queue
	Params Params // must be valid
	// Open returns the loss over rows with the facts f. sparse is set if the rows are sparse.
	// Only one goroutine uses the loss.
	Open func(f *rows.Facts, sparse bool) (Loss, error)
	// Finish returns the model. It is called only on subtask 0, after l.Move was called with
	// the model's parameters at the end of training.
	Finish func(l Loss, f Fit) model.Model
}

// Fit has those results of a training that every kind of model needs.
type Fit struct {
	Facts   *rows.Facts
	Classes signature.Classes // empty for a regression
	Inputs  signature.Inputs
	Summary optim.Summary
}

// Add adds the operator that checks the rows and the queue that trains. It returns a dataset of
// one row with the encoded model. Errors are reported with the source line of the estimator's
// caller.
func (t Training) Add(b *engine.Builder, d *engine.Dataset) *engine.Dataset {
	p := t.Params
	table, err := rows.Check(t.Op, d, rows.Columns{Vector: p.VectorCol, Features: p.FeatureCols, Label: p.LabelCol, Weight: p.WeightCol, Skip: p.Skip}, p.label())
	if err != nil {
		return model.Refuse(b, t.Op, err)
	}
	schema := arrowrows.Arrow(d.Schema())
	var label arrow.DataType
	if p.Task == signature.Classification {
		if label, err = signature.ClassColumn(schema, p.LabelCol); err != nil {
			return model.Refuse(b, t.Op, err)
		}
	}
	made := optim.Minimize(b, optim.Problem{
		Name: t.Queue, Init: table.Init, Objective: opening{t, table}, Settings: p.settings(),
		Closer: signature.ModelCloser(label, func(ctx *comqueue.ComContext) (model.Model, error) {
			facts, err := table.FactsOf(ctx)
			if err != nil {
				return nil, err
			}
			loss, err := t.open(facts, table.Sparse)
			if err != nil {
				return nil, err
			}
			r := optim.ResultOf(ctx)
			newEvaluator(loss).move(r.Parameters)
			return t.Finish(loss, Fit{
				Facts: facts, Classes: signature.Classes{Type: facts.LabelType, Values: facts.Classes},
				Inputs: signature.InputsOf(p.VectorCol, p.FeatureCols, schema, facts.Declared), Summary: r.Summary(facts.Rows, facts.Weight),
			}), nil
		}),
	})
	return signature.WarnOfDivergence(t.Op, made, string(optim.Diverging))
}

// open checks the facts and returns the loss.
func (t Training) open(f *rows.Facts, sparse bool) (Loss, error) {
	if f.Declared == 0 {
		return nil, errors.New("there are no features")
	}
	if err := cmp.Or(rows.TwoClasses(t.Params.LabelCol, f.Classes), f.Weighty()); err != nil {
		return nil, err
	}
	return t.Open(f, sparse)
}

// opening is the objective of a training.
type opening struct {
	Training
	table rows.Table
}

// Open implements optim.Objective.
func (o opening) Open(ctx *comqueue.ComContext) (optim.Evaluator, error) {
	data, err := o.table.Open(ctx)
	if err != nil {
		return optim.Evaluator{}, err
	}
	loss, err := o.open(data.Facts, o.table.Sparse)
	if err != nil {
		return optim.Evaluator{}, err
	}
	own := ctx.Shards()
	blocks := make([]*rows.Block, own.Len())
	err = ctx.ForShards(func(shard int) error {
		blocks[shard-own.Lo] = data.Block(shard)
		return nil
	})
	return Over(loss, o.Params.Task, data.Facts, own.Lo, blocks), err
}
