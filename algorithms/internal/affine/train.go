package affine

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/internal/columns"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
)

// Training is what an estimator adds to a job.
type Training struct {
	Op     string // such as "logistic.Train", for messages
	Queue  string // name of the queue, such as "logistic"
	Params Params
	// Loss is that of the objective. Where the rows decide it, LossOf does, and Loss must be
	// one with the same kind of label.
	Loss   objective.Loss
	LossOf func(f *rows.Facts) (objective.Loss, error)
	Label  rows.LabelKind
	// NewtonUpTo is up to how many features Newton's method is taken where the parameters leave
	// the method open, there is no L1 penalty, and the type of a dense column tells the number;
	// 0 leaves it to package optim.
	NewtonUpTo int
	// TableUpTo is up to how many features, where the type of the column tells the number, a
	// training without a penalty makes its table of standard errors; 0: none unless the
	// parameters ask for it.
	TableUpTo int
	// ClassWeights and Balanced are those of objective.Linear.
	ClassWeights map[string]float64
	Balanced     bool
	// Start is a model to start from, of the same features and margins; nil: zeros.
	Start *Model
	// StartClasses are the classes that the margins of Start are for, nil where labels are
	// numbers.
	StartClasses []string
	// Finish makes the estimator's model of what was found, on subtask 0.
	Finish func(f *Fit) (model.Model, error)
}

// Fit is what a training found. It is the caller's.
type Fit struct {
	Context   *comqueue.ComContext
	Params    Params
	Facts     *rows.Facts
	Objective objective.Linear
	Result    *optim.Result
	// Constants are those of the loss.
	Constants []float64
	// Model has everything but what is the estimator's own.
	Model *Model
}

// Add checks the rows and adds the queue that trains. It returns a dataset of one row with
// the encoded model, and for classifiers LabelColumn. What is wrong is reported with the
// line of the caller.
func (t Training) Add(d *engine.Dataset) *engine.Dataset {
	b := model.BuilderOf(t.Op, d)
	if d.Poisoned() {
		return d
	}
	fail := func(err error) *engine.Dataset {
		b.Errorf("%s: %w", t.Op, err)
		return b.Poisoned(t.Op)
	}
	if err := t.Params.Validate(); err != nil {
		return fail(err)
	}
	table, err := rows.Check(t.Op, d, t.Params.columns(), t.Label)
	if err != nil {
		return fail(err)
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
	if err := objective.linear.Validate(); err != nil {
		return fail(err)
	}
	settings := t.Params.settings()
	if t.Start != nil {
		if settings.Start, err = objective.reserve(table); err != nil {
			return fail(err)
		}
	}
	var label arrow.DataType
	if t.Label == rows.ClassLabel {
		label = typeOf(d.Schema(), t.Params.LabelCol)
	}
	input := d.Schema()
	return t.warn(optim.Minimize(b, optim.Problem{
		Name: t.Queue, Init: table.Init, Objective: objective, Settings: settings,
		Closer: columns.Closer(label, func(ctx *comqueue.ComContext) ([]byte, error) {
			return t.finish(ctx, objective, input)
		}),
	}))
}

// divergingRuns is what a run counts for a training whose coefficients grew without end.
const divergingRuns = "warnings: training diverges, no optimum"

// warn counts trainings that diverged.
func (t Training) warn(made *engine.Dataset) *engine.Dataset {
	if t.Params.Penalised() || t.Label != rows.ClassLabel || made.Poisoned() {
		return made
	}
	return operators.MapBatch(made, nil, func(c *engine.Context, row arrow.Record) (arrow.Record, error) {
		for i := range int(row.NumRows()) {
			text := row.Column(0).(*array.String).Value(i)
			var file struct {
				Summary struct{ Reason optim.Reason }
			}
			if err := json.Unmarshal([]byte(text), &file); err != nil {
				return nil, fmt.Errorf("%s: %w", t.Op, err)
			}
			if file.Summary.Reason == optim.Diverging {
				c.Count(divergingRuns, 1)
			}
		}
		row.Retain()
		return row, nil
	})
}

// typeOf returns the type of a column that is there.
func typeOf(schema *arrow.Schema, name string) arrow.DataType {
	i, err := batch.FindColumn(schema, name)
	if err != nil {
		return arrow.BinaryTypes.String
	}
	return schema.Field(i).Type
}

// finish makes the encoded model.
func (t Training) finish(ctx *comqueue.ComContext, o *opening, input *arrow.Schema) ([]byte, error) {
	facts, err := o.linear.Table.FactsOf(ctx)
	if err != nil {
		return nil, err
	}
	linear, err := o.with(facts)
	if err != nil {
		return nil, err
	}
	f := &Fit{Context: ctx, Params: t.Params, Facts: facts, Objective: linear, Result: optim.ResultOf(ctx)}
	c, err := linear.Coefficients(facts, f.Result.Parameters)
	if err != nil {
		return nil, err
	}
	f.Constants = c.Constants
	f.Model = &Model{Dim: facts.Declared, Columns: slices.Clone(facts.Columns), Intercepts: c.Intercepts, OffsetCol: t.Params.OffsetCol}
	for a := range c.Margins {
		f.Model.Coefficients = append(f.Model.Coefficients, c.Weights[a*c.D:(a+1)*c.D:(a+1)*c.D])
	}
	f.Model.Reads = columns.InputsOf(linear.Table, t.Params.FeatureCols, input, facts.Declared)
	ev := optim.EvaluatorOf(ctx)
	f.Model.Summary = summaryOf(f.Result, facts.Rows, ev.Weight(), f.penalty(ev.Factors()))
	made, err := t.Finish(f)
	if err != nil {
		return nil, err
	}
	return made.Encode()
}

// penalty returns the penalty at the parameters.
func (f *Fit) penalty(factors []float64) float64 {
	var absolute, squares float64
	for i, v := range f.Result.Parameters {
		v = float64(v * factors[i])
		absolute += max(v, -v)
		squares += float64(v * v)
	}
	return float64(f.Params.L1*absolute) + float64(0.5*float64(f.Params.L2*squares))
}

// opening is the objective of a training: a Linear whose loss the facts may decide, and
// which turns the model to start from into parameters.
type opening struct {
	t      Training
	linear objective.Linear

	// start is the memory of Settings.Start. What it holds depends on the facts, which are
	// the same in every subtask, and so one of them fills it in.
	start []float64
	once  sync.Once
	wrong error
}

// Open implements optim.Objective.
func (o *opening) Open(ctx *comqueue.ComContext) (optim.Evaluator, error) {
	facts, err := o.linear.Table.FactsOf(ctx)
	if err != nil {
		return nil, err
	}
	linear, err := o.with(facts)
	if err != nil {
		return nil, err
	}
	if o.t.Start != nil {
		o.once.Do(func() { o.wrong = o.begin(linear, facts) })
		if o.wrong != nil {
			return nil, fmt.Errorf("the model to start from: %w", o.wrong)
		}
	}
	return linear.Open(ctx)
}

// with returns the objective with the loss that the facts decide.
func (o *opening) with(facts *rows.Facts) (objective.Linear, error) {
	linear := o.linear
	if facts.Rows == 0 {
		return linear, errors.New("there are no rows to train on")
	}
	if !(facts.Weight > 0) {
		return linear, errors.New("every row weighs 0: there is nothing to train on")
	}
	if o.t.LossOf != nil {
		loss, err := o.t.LossOf(facts)
		if err != nil {
			return linear, err
		}
		linear.Loss = loss
	}
	return linear, nil
}

// reserve makes room for the parameters to start from.
func (o *opening) reserve(table rows.Table) ([]float64, error) {
	m := o.t.Start
	if d := table.Dim(); d != 0 && d != m.Dim {
		return nil, fmt.Errorf("the model to start from has %d features, the rows %d", m.Dim, d)
	}
	stride := m.width()
	if !o.t.Params.NoIntercept {
		stride++
	}
	o.start = make([]float64, m.Margins()*stride)
	return o.start, nil
}

// begin fills in the parameters to start from.
func (o *opening) begin(linear objective.Linear, facts *rows.Facts) error {
	m := o.t.Start
	switch {
	case facts.Declared != m.Dim:
		return fmt.Errorf("it has %d features, the rows %d", m.Dim, facts.Declared)
	case !slices.Equal(facts.Columns, m.Columns):
		return errors.New("other features occurred in its training")
	case !slices.Equal(facts.Classes, o.t.StartClasses):
		return fmt.Errorf("its classes are %q, the labels %q", o.t.StartClasses, facts.Classes)
	}
	c := objective.Coefficients{Margins: m.Margins(), D: m.width(), Intercepts: slices.Clone(m.Intercepts)}
	for _, row := range m.Coefficients {
		c.Weights = append(c.Weights, row...)
	}
	v, err := linear.Parameters(facts, c)
	if err == nil && len(v) != len(o.start) {
		err = fmt.Errorf("it has %d parameters, the objective %d", len(o.start), len(v))
	}
	if err != nil {
		return err
	}
	copy(o.start, v)
	return nil
}
