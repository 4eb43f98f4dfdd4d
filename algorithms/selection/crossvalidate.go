package selection

import (
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Options are the options of CrossValidate. Metrics are required; in all other fields, the zero
// value selects the default.
type Options struct {
	// Metrics are computed for every candidate and fold. Candidates are ranked by the first
	// metric.
	Metrics []Metric
	// K is the number of folds; 0 means 5. It must be 0 if Folds is set.
	K int
	// Stratify names a label column whose values all folds have in the same proportions. Empty
	// means that folds are not stratified.
	Stratify string
	// Seed is the seed of the division into folds; 0 means the seed of the job.
	Seed uint64
	// Folds, if not nil, are used instead of K random folds. The results of Split can be used
	// as Folds.
	Folds []Fold
	// Refit makes Comparison.Best the best candidate, trained on all rows in the same job. The
	// best candidate is known only at the end. So every candidate is trained on all rows, which
	// takes 1/(K-1) times as long as the training on all folds.
	Refit bool
	// AtOnce is the largest number of candidates that are trained at the same time; 0 means
	// all. Other candidates wait until earlier candidates have been measured. Their rows are
	// buffered in memory or on disk in the meantime.
	AtOnce int
}

// Validate returns an error if the options are not valid. It does not check that columns exist.
func (o Options) Validate() error {
	switch {
	case len(o.Metrics) == 0:
		return invalid("Metrics are empty: name what to compare candidates by")
	case o.Folds != nil && (o.K != 0 || o.Stratify != "" || o.Seed != 0):
		return invalid("Folds are given: K, Stratify and Seed have no meaning then")
	case o.Folds == nil && o.K != 0 && (o.K < 2 || o.K > 10_000):
		return invalid("K is %d: want 2 to 10000 folds, or 0 for 5", o.K)
	case o.Folds != nil && len(o.Folds) == 0:
		return invalid("Folds are given, but there is none")
	case o.AtOnce < 0:
		return invalid("AtOnce is %d: want at least 1, or 0 for all", o.AtOnce)
	}
	for i, m := range o.Metrics {
		if err := m.check(); err != nil {
			return err
		}
		if slices.ContainsFunc(o.Metrics[:i], func(other Metric) bool { return other.Name == m.Name }) {
			return fmt.Errorf("metric %q is given twice", m.Name)
		}
	}
	return nil
}

// Comparison is the result of comparing candidates.
type Comparison struct {
	// Scores has a row of type Score for every candidate, metric and fold, sorted by candidate,
	// then by metric, then by fold. After the run, TableOf returns the collected rows as a
	// Table.
	Scores *engine.Dataset
	// Best has the encoded model of the best candidate, trained on all rows, like the dataset
	// that Fit of its stage returns. It is nil without Refit. If candidates are of several
	// kinds, model.KindOf returns the kind of the best candidate's model. If the datasets of
	// the candidates' models differ in their other columns, Best has only the column of the
	// model.
	Best *engine.Dataset
}

// CrossValidate compares candidates, all in one job. For every fold, each candidate is trained
// on the fold's training rows and measured on its held-out rows. The rows are read once.
// Candidates are ranked by the mean of the first metric over the folds. If several candidates
// have the best mean, the first of them is the best.
//
// If the training of a candidate fails, the job fails. The message names the candidate, the
// fold and, in a pipeline, the stage.
func CrossValidate(rows *engine.Dataset, candidates []Candidate, o Options) Comparison {
	const op = "selection.CrossValidate"
	b := model.BuilderOf(op, rows)
	if err := checkAll(candidates, o); err != nil {
		b.Errorf("%s: %w", op, err)
		return poisonedComparison(rows, op)
	}
	if o.K == 0 {
		o.K = 5
	}
	list := o.Folds
	if list == nil {
		list = folds(op, rows, o.Stratify, o.K, o.Seed)
	}
	for i, f := range list {
		if f.Train == nil || f.Test == nil || f.Train.Builder() != b || f.Test.Builder() != b {
			b.Errorf("%s: fold %d has no datasets of this job", op, i)
			return poisonedComparison(rows, op)
		}
	}
	c := comparing{op: op, b: b, options: o, folds: list, candidates: candidates}
	for i := range candidates {
		if !c.addCandidate(i, rows) {
			return poisonedComparison(rows, op)
		}
	}
	result := Comparison{Scores: c.addScores()}
	if o.Refit {
		result.Best = c.addBest(result.Scores)
	}
	return result
}

func checkAll(candidates []Candidate, o Options) error {
	if len(candidates) == 0 {
		return fmt.Errorf("there are no candidates")
	}
	for i, c := range candidates {
		switch {
		case c.Stage == nil:
			return fmt.Errorf("candidate %d has no stage", i)
		case c.Name == "":
			return fmt.Errorf("candidate %d has no name", i)
		case slices.ContainsFunc(candidates[:i], func(other Candidate) bool { return other.Name == c.Name }):
			return fmt.Errorf("two candidates are named %q", c.Name)
		}
	}
	return o.Validate()
}

func poisonedComparison(rows *engine.Dataset, op string) Comparison {
	p := rows.Builder().Poisoned(op)
	return Comparison{Scores: p, Best: p}
}

// comparing builds the part of a job's graph that compares candidates.
type comparing struct {
	op         string
	b          *engine.Builder
	options    Options
	folds      []Fold
	candidates []Candidate

	evaluations []*engine.Dataset // the datasets of the evaluations, in the order in which they are added
	read        []reportReader    // one for each evaluation
	done        []*engine.Dataset // for each candidate: a dataset that is complete when the candidate has been measured
	refitted    []*engine.Dataset // for each candidate: its model, trained on all rows
}

// reportReader describes which metrics the result of an evaluation has, and in which columns
// they are.
type reportReader struct {
	candidate, fold int
	metrics         []int // indices in Options.Metrics
	columns         []int // indices of the columns in the evaluation's result
}

// addCandidate adds the training of a candidate on each fold and, with Refit, on all rows. It
// returns false after an error, which it has reported.
func (c *comparing) addCandidate(i int, rows *engine.Dataset) bool {
	var wait *engine.Dataset
	if n := c.options.AtOnce; n > 0 && i >= n {
		wait = c.done[i-n]
	}
	stage, first := c.candidates[i].Stage, len(c.evaluations)
	for k, f := range c.folds {
		ok := false
		c.b.Within(c.place(i, fmt.Sprintf("fold %d", k)), func() {
			trained := stage.Fit(after(f.Train, wait))
			ok = c.addEvaluations(i, k, stage.Apply(after(f.Test, wait), trained))
		})
		if !ok {
			return false
		}
	}
	measured := c.evaluations[first:]
	if c.options.Refit {
		var m *engine.Dataset
		c.b.Within(c.place(i, "all rows"), func() { m = stage.Fit(after(rows, wait)) })
		if m == nil || m.Poisoned() {
			return false
		}
		if fields := arrowrows.Arrow(m.Schema()).FieldIndices(model.Column); len(fields) != 1 || arrowrows.Arrow(m.Schema()).Field(fields[0]).Type.ID() != arrow.STRING {
			c.b.Errorf("%s: the model of candidate %q has no column %q of text", c.op, c.candidates[i].Name, model.Column)
			return false
		}
		c.refitted = append(c.refitted, m)
		measured = append(slices.Clone(measured), m)
	}
	if c.options.AtOnce > 0 {
		c.done = append(c.done, c.addDone(measured))
	}
	return true
}

// place returns the text by which messages name the training of a candidate on the given rows,
// such as "all rows". The name of a candidate from Grid includes its parameters.
func (c *comparing) place(candidate int, rows string) string {
	return fmt.Sprintf("candidate %q, %s", c.candidates[candidate].Name, rows)
}

// addEvaluations adds the evaluations of a candidate on the held-out rows of a fold. applied
// has the held-out rows with the candidate's predictions. It returns false after an error,
// which it has reported.
func (c *comparing) addEvaluations(candidate, fold int, applied *engine.Dataset) bool {
	if applied == nil || applied.Poisoned() {
		return false
	}
	var seen []*Evaluation
	for _, m := range c.options.Metrics {
		if slices.Contains(seen, m.Evaluation) {
			continue
		}
		seen = append(seen, m.Evaluation)
		d := m.Evaluation.Evaluate(applied)
		if d == nil || d.Poisoned() {
			return false
		}
		r := reportReader{candidate: candidate, fold: fold}
		for j, other := range c.options.Metrics {
			if other.Evaluation != m.Evaluation {
				continue
			}
			column, err := other.columnOf(arrowrows.Arrow(d.Schema()))
			if err != nil {
				c.b.Errorf("%s: %w", c.op, err)
				return false
			}
			r.metrics, r.columns = append(r.metrics, j), append(r.columns, column)
		}
		c.evaluations, c.read = append(c.evaluations, d), append(c.read, r)
	}
	return true
}

// after returns a dataset with the same rows that does not start before the dataset other is
// complete. If other is nil, it returns rows.
func after(rows, other *engine.Dataset) *engine.Dataset {
	if other == nil || rows.Poisoned() {
		return rows
	}
	return rows.Builder().Add(engine.Spec{
		Op: "Wait", Schema: rows.Schema(),
		Inputs:   []engine.Port{{From: rows}, {From: other, Partitioner: engine.Broadcast, Side: true}},
		Operator: func() engine.Operator { return waitOperator{} },
	})
}

// waitOperator passes rows on unchanged. It delays them until its side input is complete,
// because the engine opens an operator only when its side inputs are complete.
type waitOperator struct{ engine.BaseOperator }

func (waitOperator) Process(_ *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	return out.Emit(shard, arrowrows.Batch(rows))
}

// doneRow is the row type of addDone, whose dataset has no rows.
type doneRow struct{ Done bool }

// addDone returns a dataset without rows that is complete when all of others are complete.
func (c *comparing) addDone(others []*engine.Dataset) *engine.Dataset {
	var inputs []engine.Port
	for _, d := range others {
		inputs = append(inputs, engine.Port{From: d})
	}
	return c.b.Add(engine.Spec{
		Op: "Done", Schema: arrowrows.SchemaOf[doneRow](), Inputs: inputs, Single: true,
		Operator: func() engine.Operator { return discardOperator{} },
	})
}

// discardOperator drops all rows.
type discardOperator struct{ engine.BaseOperator }

func (discardOperator) Process(*engine.Context, int, int, engine.Batch, engine.Output) error {
	return nil
}

// addScores adds the operator that collects the results of all evaluations.
func (c *comparing) addScores() *engine.Dataset {
	var inputs []engine.Port
	for _, d := range c.evaluations {
		inputs = append(inputs, engine.Port{From: d})
	}
	var attrs []engine.Attr
	for _, m := range c.options.Metrics {
		attrs = append(attrs, engine.Attr{Key: "metric", Value: m.Name})
	}
	return c.b.Add(engine.Spec{
		Op: "Scores", Attrs: attrs, Schema: arrowrows.SchemaOf[Score](), Inputs: inputs, Single: true,
		Operator: func() engine.Operator { return &gatherer{comparing: c, values: c.emptyScores()} },
	})
}

// gatherer is the operator that addScores adds.
type gatherer struct {
	engine.BaseOperator
	*comparing
	values [][][]float64 // indexed by candidate, metric and fold
	rows   int
}

func (c *comparing) emptyScores() [][][]float64 {
	values := make([][][]float64, len(c.candidates))
	for i := range values {
		for range c.options.Metrics {
			values[i] = append(values[i], make([]float64, len(c.folds)))
		}
	}
	return values
}

func (o *gatherer) Process(_ *engine.Context, port, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	r := o.read[port]
	for j, column := range r.columns {
		values := rows.Column(column).(*array.Float64)
		for i := range values.Len() {
			if values.IsNull(i) {
				return fmt.Errorf("%s: metric %q is null", o.place(r.candidate, fmt.Sprintf("fold %d", r.fold)), o.options.Metrics[r.metrics[j]].Name)
			}
			o.values[r.candidate][r.metrics[j]][r.fold] = values.Value(i)
		}
	}
	o.rows += int(rows.NumRows())
	return nil
}

func (o *gatherer) Finish(c *engine.Context, out engine.Output) error {
	if o.rows != len(o.evaluations) {
		return fmt.Errorf("%d evaluations gave %d rows: each must give one", len(o.evaluations), o.rows)
	}
	var names []string
	for _, candidate := range o.candidates {
		names = append(names, candidate.Name)
	}
	return arrowrows.Emit(c.Allocator, out, c.Range.Hi-1, scores(names, o.options.Metrics, o.values))
}

// encoded is the row type of a dataset that has only the model.
type encoded struct {
	Model string `column:"model"`
}

// addBest adds the operator that picks the model of the best candidate. The dataset of a model
// may have other columns, such as one with the type of the labels. The other columns are kept
// if the datasets of all candidates have the same columns.
func (c *comparing) addBest(ranked *engine.Dataset) *engine.Dataset {
	inputs := []engine.Port{}
	schema := c.refitted[0].Schema()
	for _, d := range c.refitted {
		inputs = append(inputs, engine.Port{From: d})
		if !d.Schema().Equal(schema) {
			schema = arrowrows.SchemaOf[encoded]()
		}
	}
	inputs = append(inputs, engine.Port{From: ranked, Partitioner: engine.Broadcast, Side: true})
	return c.b.Add(engine.Spec{
		Op: "Best", Schema: schema, Inputs: inputs, Single: true,
		Operator: func() engine.Operator { return &bestOperator{models: len(c.refitted), schema: arrowrows.Arrow(schema)} },
	})
}

// bestOperator is the operator that addBest adds.
type bestOperator struct {
	engine.BaseOperator
	models int
	schema *arrow.Schema
	best   int
}

func (o *bestOperator) Open(c *engine.Context) error {
	list, err := arrowrows.Rows[Score](c.Side(o.models)...)
	if err != nil {
		return err
	}
	best := (&Table{Scores: list}).Best()
	if best == nil {
		return fmt.Errorf("no candidate is the best: every mean of the first metric is NaN")
	}
	o.best = int(best.Index)
	return nil
}

func (o *bestOperator) Process(_ *engine.Context, port, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	if port != o.best || rows.NumRows() == 0 {
		return nil
	}
	if rows.NumRows() != 1 {
		return fmt.Errorf("training gave %d models, want one", rows.NumRows())
	}
	columns := make([]arrow.Array, o.schema.NumFields())
	for i, f := range o.schema.Fields() {
		at, err := batch.FindColumn(rows.Schema(), f.Name)
		if err != nil {
			return err
		}
		columns[i] = rows.Column(at)
	}
	made := array.NewRecord(o.schema, columns, 1)
	defer made.Release()
	return out.Emit(shard, arrowrows.Batch(made))
}

// invalid returns an error whose text begins with the name of an option.
func invalid(format string, a ...any) error { return fmt.Errorf(format, a...) }
