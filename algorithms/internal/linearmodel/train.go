package linearmodel

import (
	"errors"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Training describes the training that an estimator adds to a job.
type Training struct {
	Op     string // name of the training in messages, such as "logistic.Train"
	Queue  string // name of the queue, such as "logistic"
	Params Params
	// Loss is the loss of the objective. If the loss depends on the facts about the rows,
	// LossOf must be set and return the loss. Loss must then be a loss for the same kind of
	// labels.
	Loss   objective.Loss
	LossOf func(f *rows.Facts) (objective.Loss, error)
	// LossesOf, if set, returns several losses, which are used instead of Loss and LossOf. Each
	// loss has its own parameters, and the parameters of the objective are their concatenation.
	// Join returns the evaluator of the sum of the losses, given the evaluator of each loss.
	// The model has a margin for each loss.
	LossesOf func(f *rows.Facts) ([]objective.Loss, error)
	Join     func(parts []optim.Evaluator) optim.Evaluator
	// GapTol is passed on as optim.Settings.GapTol.
	GapTol float64
	// NewtonUpTo is the largest number of features for which Newton's method is the default.
	// Newton's method is the default only if the features are a dense column whose type has the
	// number of features, and if there is no L1 penalty. If NewtonUpTo is 0, package optim
	// chooses the method.
	NewtonUpTo int
	// TableUpTo is the largest number of features for which a training without a penalty
	// computes a table of standard errors by default. This requires a column whose type has the
	// number of features. With 0, there is a table only if the parameters request it.
	TableUpTo int
	// ClassWeights and Balanced are as in objective.Linear.
	ClassWeights map[string]float64
	Balanced     bool
	// Start is a model with the same features and margins, from whose coefficients training
	// starts. If it is nil, training starts from zeros.
	Start *Model
	// Fitting, if not nil, changes c, which has the coefficients of Start. It adapts them to a
	// loss that has constants or shifts margins.
	Fitting func(c *objective.Coefficients, loss objective.Loss)
	// StartClasses are the classes of the model Start; nil if labels are numbers.
	StartClasses []string
	// SideInput, if not nil, adds another dataset to the job. This dataset is computed from the
	// checked rows before training. Finish reads this dataset by SideInputKey.
	SideInput    func(b *engine.Builder, t rows.Table) *engine.Dataset
	SideInputKey comqueue.BroadcastData
	// Finish returns the estimator's model for the fit f. It is called only on subtask 0.
	Finish func(f *Fit) (model.Model, error)
}

// Fit is the result of a training. The function Finish may modify it.
type Fit struct {
	Context *comqueue.ComContext
	Params  Params
	Facts   *rows.Facts
	// Objective is the objective, or the first of several objectives.
	Objective objective.Linear
	Result    *optim.Result
	// Constants are the values that training found for the constants of the losses; see
	// objective.Shape.Constants.
	Constants []float64
	// Model is complete, except for the fields that an estimator adds.
	Model *Model
}

// Add adds the operator that checks the rows and the queue that trains. It returns a dataset of
// one row with the encoded model, and with LabelColumn for classifiers. Errors are reported
// with the source line of the estimator's caller.
func (t Training) Add(d *engine.Dataset) *engine.Dataset {
	b, refused := model.Begin(t.Op, d, t.Params.Validate())
	if refused != nil {
		return refused
	}
	table, err := rows.Check(t.Op, d, t.Params.columns(), t.Loss.Label())
	if err != nil {
		return model.Refuse(b, t.Op, err)
	}
	known := table.Dim()
	if known > 0 && known <= t.TableUpTo && !t.Params.Penalised() {
		t.Params.Inference = true
	}
	if known > 0 && known <= t.NewtonUpTo && !table.Sparse && t.Params.Method == optim.Auto && t.Params.L1 == 0 {
		t.Params.Method = optim.Newton
	}
	objective := &opening{t: t, linear: objective.Linear{
		Table: table, Loss: t.Loss, NoIntercept: t.Params.NoIntercept, NoStandardize: t.Params.NoStandardize,
		ClassWeights: t.ClassWeights, Balanced: t.Balanced,
	}}
	objective.linear.Table.State = objective.bytesPerRow
	if err := objective.linear.Validate(); err != nil {
		return model.Refuse(b, t.Op, err)
	}
	settings := t.Params.settings()
	settings.GapTol = t.GapTol
	var start func(ctx *comqueue.ComContext) ([]float64, error)
	if m := t.Start; m != nil {
		if d := table.Dim(); d != 0 && d != m.Dim {
			return model.Refuse(b, t.Op, fmt.Errorf("the model to start from has %d features, the rows %d", m.Dim, d))
		}
		start = objective.start
	}
	var label arrow.DataType
	if table.Label == rows.ClassLabel {
		label = typeOf(arrowrows.Arrow(d.Schema()), t.Params.LabelCol)
	}
	input, init := d.Schema(), objective.linear.Table.Init
	if t.SideInput != nil {
		beside := t.SideInput(b, table)
		init = func(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
			return objective.linear.Table.Init(q).InitWithBroadcastData(t.SideInputKey, beside)
		}
	}
	made := optim.Minimize(b, optim.Problem{
		Name: t.Queue, Init: init, Objective: objective, Settings: settings, Start: start,
		Closer: signature.Closer(label, func(ctx *comqueue.ComContext) ([]byte, error) {
			return t.finish(ctx, objective, arrowrows.Arrow(input))
		}),
	})
	if t.Params.Penalised() {
		return made // with a penalty, coefficients do not grow without bound
	}
	return signature.WarnOfDivergence(t.Op, made, string(optim.Diverging))
}

// typeOf returns the type of a column, which must exist.
func typeOf(schema *arrow.Schema, name string) arrow.DataType {
	i, err := batch.FindColumn(schema, name)
	if err != nil {
		return arrow.BinaryTypes.String
	}
	return schema.Field(i).Type
}

// finish returns the encoded model.
func (t Training) finish(ctx *comqueue.ComContext, o *opening, input *arrow.Schema) ([]byte, error) {
	facts, err := o.linear.Table.FactsOf(ctx)
	if err != nil {
		return nil, err
	}
	parts, err := o.parts(facts)
	if err != nil {
		return nil, err
	}
	f := &Fit{Context: ctx, Params: t.Params, Facts: facts, Objective: parts[0], Result: optim.ResultOf(ctx)}
	f.Model = &Model{Dim: facts.Declared, Columns: slices.Clone(facts.Columns), OffsetCol: t.Params.OffsetCol}
	width := len(f.Result.Parameters) / len(parts)
	var factors []float64 // the penalty factor of each parameter
	for k, part := range parts {
		own, err := part.PenaltyFactors(facts)
		if err != nil {
			return nil, err
		}
		factors = append(factors, own...)
		c, err := part.Coefficients(facts, f.Result.Parameters[k*width:(k+1)*width])
		if err != nil {
			return nil, err
		}
		f.Constants = append(f.Constants, c.Constants...)
		f.Model.Intercepts = append(f.Model.Intercepts, c.Intercepts...)
		for a := range c.Margins {
			f.Model.Coefficients = append(f.Model.Coefficients, c.Weights[a*c.D:(a+1)*c.D:(a+1)*c.D])
		}
	}
	f.Model.Reads = signature.InputsOf(t.Params.VectorCol, t.Params.FeatureCols, input, facts.Declared)
	weight, err := parts[0].Weight(facts)
	if err != nil {
		return nil, err
	}
	f.countReads(float64(len(parts)))
	f.Model.Summary = summaryOf(f.Result, facts.Rows, weight, f.penalty(factors))
	made, err := t.Finish(f)
	if err != nil {
		return nil, err
	}
	return made.Encode()
}

// countReads multiplies the numbers of reads in f by the number of parts. The optimiser counts
// a read of all parts as one read, but each part reads the rows.
func (f *Fit) countReads(parts float64) {
	f.Result.Reads *= parts
	for i := range f.Result.Record {
		f.Result.Record[i].Reads *= parts
	}
}

// penalty returns the penalty at the parameters of the result. factors has the penalty factor
// of each parameter.
func (f *Fit) penalty(factors []float64) float64 {
	var absolute, squares float64
	for i, v := range f.Result.Parameters {
		v = float64(v * factors[i])
		absolute += max(v, -v)
		squares += float64(v * v)
	}
	var sum float64
	if f.Params.L1 > 0 {
		sum = float64(f.Params.L1 * absolute)
	}
	if f.Params.L2 > 0 { // without L2 the squares may have overflowed
		sum += float64(0.5 * float64(f.Params.L2*squares))
	}
	return sum
}

// opening is the objective of a training: one objective.Linear, or the sum of several of them.
// Their losses may depend on the facts.
type opening struct {
	t      Training
	linear objective.Linear
}

// Open implements optim.Objective.
func (o *opening) Open(ctx *comqueue.ComContext) (optim.Evaluator, error) {
	facts, err := o.linear.Table.FactsOf(ctx)
	if err != nil {
		return optim.Evaluator{}, err
	}
	parts, err := o.parts(facts)
	if err != nil {
		return optim.Evaluator{}, err
	}
	if len(parts) == 1 {
		return parts[0].Open(ctx) // the evaluator of a single part has functions that the result of Join does not have
	}
	var opened []optim.Evaluator
	for _, part := range parts {
		ev, err := part.Open(ctx)
		if err != nil {
			return optim.Evaluator{}, err
		}
		opened = append(opened, ev)
	}
	return o.t.Join(opened), nil
}

// bytesPerRow returns the number of bytes that the objectives store for each row.
func (o *opening) bytesPerRow(facts *rows.Facts) (n int64) {
	parts, err := o.parts(facts)
	if err != nil {
		return 0 // Open returns the error
	}
	for _, part := range parts {
		n += part.BytesPerRow(facts)
	}
	return n
}

// parts returns the objectives, each with its loss for the facts.
func (o *opening) parts(facts *rows.Facts) ([]objective.Linear, error) {
	if facts.Rows == 0 {
		return nil, errors.New("there are no rows to train on")
	}
	if !(facts.Weight > 0) {
		return nil, errors.New("every row weighs 0: there is nothing to train on")
	}
	losses := []objective.Loss{o.linear.Loss}
	var err error
	switch {
	case o.t.LossesOf != nil:
		losses, err = o.t.LossesOf(facts)
	case o.t.LossOf != nil:
		losses[0], err = o.t.LossOf(facts)
	}
	if err != nil {
		return nil, err
	}
	parts := make([]objective.Linear, len(losses))
	for k, loss := range losses {
		parts[k] = o.linear
		parts[k].Loss = loss
	}
	return parts, nil
}

// start returns the parameters from which training starts. They are computed from the model
// Start.
func (o *opening) start(ctx *comqueue.ComContext) ([]float64, error) {
	facts, err := o.linear.Table.FactsOf(ctx)
	if err != nil {
		return nil, err
	}
	parts, err := o.parts(facts)
	if err != nil {
		return nil, err
	}
	v, err := o.begin(parts, facts)
	if err != nil {
		return nil, fmt.Errorf("the model to start from: %w", err)
	}
	return v, nil
}

// begin converts the coefficients of the model Start to parameters. The margins of the model
// are divided equally among the parts, in order.
func (o *opening) begin(parts []objective.Linear, facts *rows.Facts) ([]float64, error) {
	m := o.t.Start
	switch {
	case facts.Declared != m.Dim:
		return nil, fmt.Errorf("it has %d features, the rows %d", m.Dim, facts.Declared)
	case !slices.Equal(facts.Columns, m.Columns):
		return nil, errors.New("other features occurred in its training")
	case !slices.Equal(facts.Classes, o.t.StartClasses):
		return nil, fmt.Errorf("its classes are %q, the labels %q", o.t.StartClasses, facts.Classes)
	case m.Margins()%len(parts) != 0:
		return nil, fmt.Errorf("it has %d margins for %d objectives", m.Margins(), len(parts))
	}
	var v []float64
	each := m.Margins() / len(parts)
	for k, part := range parts {
		c := objective.Coefficients{Margins: each, D: m.width(), Intercepts: slices.Clone(m.Intercepts[k*each : (k+1)*each])}
		for _, row := range m.Coefficients[k*each : (k+1)*each] {
			c.Weights = append(c.Weights, row...)
		}
		if o.t.Fitting != nil {
			o.t.Fitting(&c, part.Loss)
		}
		own, err := part.Parameters(facts, c)
		if err != nil {
			return nil, err
		}
		v = append(v, own...)
	}
	return v, nil
}
