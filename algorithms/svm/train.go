package svm

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/algorithms/internal/affine"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Measures of fit in Summary.Measures.
const (
	// DualityGap is how far the objective is above a lower bound of its minimum, at most;
	// defined where the loss is not squared, and the method not SGD.
	DualityGap = "duality_gap"
	// RelativeDualityGap is that divided by the objective.
	RelativeDualityGap = "relative_duality_gap"
)

// Defaults.
const (
	defaultGapTol  = 1e-6
	defaultL2      = 0.01
	defaultMaxIter = 1000
)

// machine is what both estimators train.
type machine struct {
	op, queue string
	common    affine.Params
	gapTol    float64 // 0: the loss has no kinks, or stays as it is
	label     rows.LabelKind
	// losses are those of the parts, given the facts.
	losses func(f *rows.Facts) ([]objective.Loss, error)

	classWeights map[string]float64
	balanced     bool

	start        *affine.Model // nil: zeros
	startClasses []string
	finish       func(m *affine.Model, f *rows.Facts) (model.Model, error)
}

// shrink is what the smoothing of stand-ins is divided by from round to round: 3 takes fewer
// iterations in all than the 10 of package objective, as rounds begin closer to their end.
const shrink = 3

// kinked has a loss with kinks minimised in the way that the method asks for.
func kinked(l objective.Kinked, m optim.Method) objective.Loss {
	if m == optim.SGD {
		return l
	}
	return objective.Smooth{Loss: l, Shrink: shrink}
}

// withDefaults fills in the defaults of this package.
func withDefaults(p affine.Params) affine.Params {
	if p.L1 == 0 && p.L2 == 0 {
		p.L2 = defaultL2
	}
	if p.MaxIter == 0 && p.Method != optim.SGD {
		p.MaxIter = defaultMaxIter
	}
	return p
}

// gapTolOf returns the tolerance of the gap that is asked for.
func gapTolOf(tol float64, squared bool, m optim.Method) float64 {
	switch {
	case squared || m == optim.SGD:
		return 0
	case tol == 0:
		return defaultGapTol
	}
	return tol
}

// validate tells what is wrong with parameters that both estimators have.
func validate(p affine.Params, squared bool, gapTol float64) []error {
	errs := []error{p.Validate()}
	if !(gapTol >= 0) || math.IsInf(gapTol, 0) {
		errs = append(errs, fmt.Errorf("GapTol is %v: want a number above 0, or 0 for %v", gapTol, defaultGapTol))
	}
	if !squared && p.L1 > 0 && p.L2 == 0 && p.Method != optim.SGD {
		errs = append(errs, errors.New("L1 is set and L2 is 0: a loss that is not squared needs an L2 penalty too, without which there is no lower bound of the minimum"))
	}
	return errs
}

// settings are those of the optimiser.
func (t machine) settings() optim.Settings {
	p := t.common
	return optim.Settings{
		Method: p.Method, L1: p.L1, L2: p.L2, MaxIter: p.MaxIter, Tol: p.Tol, LossTol: p.LossTol, StepTol: p.StepTol, GapTol: t.gapTol,
		Stochastic: p.Stochastic, Seed: p.Seed,
	}
}

// add checks the rows and adds the queue that trains. It returns a dataset of one row with
// the encoded model, and for classes a column of the labels' type.
func (t machine) add(d *engine.Dataset) *engine.Dataset {
	b := model.BuilderOf(t.op, d)
	if d.Poisoned() {
		return d
	}
	fail := func(err error) *engine.Dataset {
		b.Errorf("%s: %w", t.op, err)
		return b.Poisoned(t.op)
	}
	p := t.common
	table, err := rows.Check(t.op, d, rows.Columns{
		Vector: p.VectorCol, Features: p.FeatureCols, Label: p.LabelCol, Weight: p.WeightCol, Offset: p.OffsetCol, Skip: p.Skip,
	}, t.label)
	if err != nil {
		return fail(err)
	}
	o := &opening{machine: t, linear: objective.Linear{
		Table: table, Loss: objective.SquaredHingeAgainst{}, NoIntercept: p.NoIntercept, NoStandardize: p.NoStandardize,
		ClassWeights: t.classWeights, Balanced: t.balanced,
	}}
	if t.label == rows.NumberLabel {
		o.linear.Loss = objective.Squared{}
	}
	if err := o.linear.Validate(); err != nil {
		return fail(err)
	}
	settings := t.settings()
	if t.start != nil {
		if settings.Start, err = o.reserve(); err != nil {
			return fail(err)
		}
	}
	fields := []arrow.Field{{Name: model.Column, Type: arrow.BinaryTypes.String}}
	if i, err := batch.FindColumn(d.Schema(), p.LabelCol); err == nil && t.label == rows.ClassLabel {
		fields = append(fields, arrow.Field{Name: affine.LabelColumn, Type: d.Schema().Field(i).Type, Nullable: true})
	}
	schema, input := arrow.NewSchema(fields, nil), d.Schema()
	return optim.Minimize(b, optim.Problem{
		Name: t.queue, Init: table.Init, Objective: o, Settings: settings,
		Closer: comqueue.OutputBatches(schema, func(ctx *comqueue.ComContext, emit func(arrow.Record) error) error {
			file, err := o.made(ctx, input)
			if err != nil {
				return err
			}
			row, err := oneRow(schema, file)
			if err != nil {
				return err
			}
			defer row.Release()
			return emit(row)
		}),
	})
}

// oneRow returns the row with a model's file, and null in other columns.
func oneRow(schema *arrow.Schema, file []byte) (arrow.Record, error) {
	b, err := batch.NewRecordBuilder(memory.NewGoAllocator(), schema)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	b.Field(0).(*array.StringBuilder).Append(string(file))
	for i := 1; i < schema.NumFields(); i++ {
		batch.AppendNull(b.Field(i))
	}
	return b.NewRecord()
}

// opening is the objective of a training: as many Linear ones as the facts decide.
type opening struct {
	machine
	linear objective.Linear

	// begun is the memory of Settings.Start. What it holds depends on the facts, which are
	// the same in every subtask, and so one of them fills it in.
	begun []float64
	once  sync.Once
	wrong error
}

// parts returns the objectives.
func (o *opening) parts(f *rows.Facts) ([]objective.Linear, error) {
	if f.Rows == 0 {
		return nil, errors.New("there are no rows to train on")
	}
	losses, err := o.losses(f)
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

// Open implements optim.Objective.
func (o *opening) Open(ctx *comqueue.ComContext) (optim.Evaluator, error) {
	facts, err := o.linear.Table.FactsOf(ctx)
	if err != nil {
		return nil, err
	}
	parts, err := o.parts(facts)
	if err != nil {
		return nil, err
	}
	var opened []*objective.Evaluator
	for _, part := range parts {
		ev, err := part.Open(ctx)
		if err != nil {
			return nil, err
		}
		opened = append(opened, ev.(*objective.Evaluator))
	}
	if o.start != nil {
		o.once.Do(func() { o.wrong = o.begin(parts, facts) })
		if o.wrong != nil {
			return nil, fmt.Errorf("the model to start from: %w", o.wrong)
		}
	}
	if len(opened) == 1 {
		return opened[0], nil // with all that it can do besides
	}
	return newJoint(opened), nil
}

// reserve makes room for the parameters to start from.
func (o *opening) reserve() ([]float64, error) {
	m := o.start
	if d := o.linear.Table.Dim(); d != 0 && d != m.Dim {
		return nil, fmt.Errorf("the model to start from has %d features, the rows %d", m.Dim, d)
	}
	n := 0
	for _, row := range m.Coefficients {
		n += len(row)
		if !o.common.NoIntercept {
			n++
		}
	}
	o.begun = make([]float64, n)
	return o.begun, nil
}

// begin fills in the parameters to start from.
func (o *opening) begin(parts []objective.Linear, f *rows.Facts) error {
	m := o.start
	switch {
	case f.Declared != m.Dim:
		return fmt.Errorf("it has %d features, the rows %d", m.Dim, f.Declared)
	case !slices.Equal(f.Columns, m.Columns):
		return errors.New("other features occurred in its training")
	case !slices.Equal(f.Classes, o.startClasses):
		return fmt.Errorf("its classes are %q, the labels %q", o.startClasses, f.Classes)
	case len(parts) != m.Margins():
		return fmt.Errorf("it has %d margins, want %d", m.Margins(), len(parts))
	}
	to := o.begun
	for k, part := range parts {
		v, err := part.Parameters(f, objective.Coefficients{
			Margins: 1, D: len(m.Coefficients[k]), Weights: slices.Clone(m.Coefficients[k]), Intercepts: []float64{m.Intercepts[k]},
		})
		if err != nil {
			return err
		}
		to = to[copy(to, v):]
	}
	return nil
}

// made makes the encoded model, on subtask 0.
func (o *opening) made(ctx *comqueue.ComContext, input *arrow.Schema) ([]byte, error) {
	facts, err := o.linear.Table.FactsOf(ctx)
	if err != nil {
		return nil, err
	}
	parts, err := o.parts(facts)
	if err != nil {
		return nil, err
	}
	ev, result := optim.EvaluatorOf(ctx), optim.ResultOf(ctx)
	width := ev.Len() / len(parts)
	m := &affine.Model{Dim: facts.Declared, Columns: slices.Clone(facts.Columns), OffsetCol: o.common.OffsetCol}
	for k, part := range parts {
		c, err := part.Coefficients(facts, result.Parameters[k*width:(k+1)*width])
		if err != nil {
			return nil, err
		}
		m.Coefficients, m.Intercepts = append(m.Coefficients, c.Weights), append(m.Intercepts, c.Intercepts[0])
	}
	if m.Reads, err = inputsOf(input, o.linear.Table, o.common.FeatureCols, facts.Declared); err != nil {
		return nil, err
	}
	m.Summary = o.summary(result, ev, len(parts), facts.Rows)
	made, err := o.finish(m, facts)
	if err != nil {
		return nil, err
	}
	return made.Encode()
}

// summary tells about a result. What the optimiser takes for one read of the rows is one
// for each part.
func (o *opening) summary(r *optim.Result, ev optim.Evaluator, parts int, rows int64) affine.Summary {
	var absolute, squares float64
	factors := ev.Factors()
	for i, v := range r.Parameters {
		v *= factors[i]
		absolute += max(v, -v)
		squares += float64(v * v)
	}
	penalty := float64(o.common.L1*absolute) + float64(0.5*float64(o.common.L2*squares))
	reads := float64(parts)
	for i := range r.Record {
		r.Record[i].Reads *= reads
	}
	s := affine.Summary{
		Rows: rows, Weight: ev.Weight(), Method: r.Method.String(), Iterations: r.Iterations, Converged: r.Converged, Reason: r.Reason,
		Loss: r.Loss - penalty, Objective: r.Loss, GradientNorm: r.GradientNorm, Reads: reads * r.Reads, Record: r.Record,
	}
	if o.gapTol > 0 {
		gap := max(r.Gap, 0) // below 0 by rounding
		s.Note(DualityGap, gap)
		if r.Loss > 0 {
			s.Note(RelativeDualityGap, gap/r.Loss)
		}
	}
	return s
}

// inputsOf returns the columns of the features, with the number of features where the type
// of a vector column does not tell it.
func inputsOf(schema *arrow.Schema, t rows.Table, features []string, dim int) ([]model.Input, error) {
	names := features
	if v := t.Vector(); v != "" {
		names = []string{v}
	}
	var in []model.Input
	for _, name := range names {
		i, err := batch.FindColumn(schema, name)
		if err != nil {
			return nil, err
		}
		dt := schema.Field(i).Type
		text := batch.TypeName(dt)
		if batch.IsVector(dt) && batch.VectorDim(dt) == 0 && dim > 0 {
			text = fmt.Sprintf("%s[%d]", text, dim)
		}
		in = append(in, model.Input{Column: name, Type: text})
	}
	return in, nil
}
