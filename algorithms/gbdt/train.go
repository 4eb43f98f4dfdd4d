package gbdt

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/grow"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Set is an evaluation set: rows with the columns of the training rows, on which metrics are
// measured after each round. They are not trained on.
type Set struct {
	// Name names the set in progress reports and in Summary.Record.
	Name string
	Rows *engine.Dataset
	// If Skip or Params.Skip is true, rows whose label or weight is null or NaN are left out,
	// and the counter "rows of evaluation sets skipped" has their number. Otherwise such a row
	// is an error.
	Skip bool
}

// boosting describes a training. It is not changed after the job is built. Its methods are the
// stages of the queue.
type boosting struct {
	params    Params
	table     bins.Table
	sets      []evaluation
	ordered   bool // at least one metric depends on the order of rows
	grower    *grow.Grower
	monotone  []int8    // constraints by feature; nil without constraints
	quantiles *selector // finds quantiles for the prior and for leaf values
	scores    *selector // finds the score from which on GOSS takes all rows
	label     arrow.DataType
	schema    *arrow.Schema
}

// evaluation is an evaluation set that has been checked.
type evaluation struct {
	name  string
	table bins.Table
}

// Train trains a model of boosted trees on the rows of d, and returns it as a dataset of one
// row, whose column "model" has the bytes of Model.Encode. For a classification there is a
// second column, of nulls, whose type is that of the labels. After each round all metrics are
// measured on the training rows, as the set "train", and on the evaluation sets.
//
// The queue is named "gbdt", has a superstep for each round, and reports each metric on each
// set under names such as "test logloss". Errors about the parameters, or about columns that
// they name, are reported when the job is built, with the caller's line.
func Train(d *engine.Dataset, p Params, sets ...Set) *engine.Dataset {
	const op = "gbdt.Train"
	b, refused := model.Begin(op, d, errors.Join(p.Validate(), p.checkSets(sets)))
	if refused != nil {
		return refused
	}
	for _, s := range sets {
		if s.Rows.Poisoned() {
			return s.Rows
		}
	}
	q, err := prepare(op, d, p.withDefaults(b.Seed()), sets)
	if err != nil {
		return model.Refuse(b, op, err)
	}
	return q.queue(b)
}

// checkSets returns all errors about the evaluation sets.
func (p *Params) checkSets(sets []Set) error {
	var e problems
	seen := map[string]bool{"train": true}
	if p.ValidationFraction > 0 {
		seen["validation"] = true
	}
	for i, s := range sets {
		switch {
		case s.Rows == nil:
			e.add("evaluation set %d has no Rows", i)
		case s.Name == "":
			e.add("evaluation set %d has no Name", i)
		case seen[s.Name]:
			e.add("there are two evaluation sets %q", s.Name)
		}
		seen[s.Name] = true
	}
	if p.EarlyStoppingRounds > 0 {
		if len(seen) == 1 {
			e.add("EarlyStoppingRounds is set, and there is neither an evaluation set nor a ValidationFraction to stop by")
		}
		if metrics, err := metricsOf(p); err == nil && len(metrics) == 0 {
			e.add("EarlyStoppingRounds is set, and there are no metrics to stop by")
		}
	}
	return errors.Join(e...)
}

// prepare checks the columns and returns the description of the training, whose operator is op.
func prepare(op string, d *engine.Dataset, p Params, sets []Set) (*boosting, error) {
	q := &boosting{params: p, schema: arrowrows.Arrow(d.Schema())}
	kind := bins.NumberLabel
	if p.Objective.classes() {
		kind = bins.ClassLabel
		var err error
		if q.label, err = signature.ClassColumn(q.schema, p.LabelCol); err != nil {
			return nil, err
		}
	}
	metrics, err := metricsOf(&p)
	if err != nil {
		return nil, err
	}
	for _, m := range metrics {
		q.ordered = q.ordered || m.ordered != nil
	}
	features, dim, err := p.featureNames(q.schema)
	if err != nil {
		return nil, err
	}
	grown, err := p.growth(features, p.categorical(q.schema), dim)
	if err != nil {
		return nil, err
	}
	q.monotone = grown.Monotone
	q.grower = grow.New(grown)
	d, margins, err := p.start(d)
	if err != nil {
		return nil, err
	}
	if q.table, err = bins.Check(op, d, p.columns(margins), kind, bins.Options{MaxBins: p.MaxBins, AbsentIsZero: p.AbsentIsZero}); err != nil {
		return nil, err
	}
	q.table.State = q.bytesPerRow
	for _, s := range sets {
		rows, _, err := p.start(s.Rows)
		var table bins.Table
		if err == nil {
			table, err = q.table.Other(s.Name, rows, s.Skip)
			table.State = q.bytesPerSetRow
		}
		if err != nil {
			return nil, err
		}
		q.sets = append(q.sets, evaluation{s.Name, table})
	}
	if q.params.Objective == Absolute || q.params.Objective == Quantile || q.params.Objective == Huber {
		q.quantiles = newSelector("quantile", func(ctx *comqueue.ComContext) *selection { return &trained.Get(ctx).quant })
	}
	if q.params.GOSS {
		q.scores = newSelector("goss", func(ctx *comqueue.ComContext) *selection { return &trained.Get(ctx).goss })
	}
	return q, nil
}

// columns returns the columns that training reads; margins has the names of the margin columns.
func (p *Params) columns(margins []string) bins.Columns {
	return bins.Columns{
		Vector: p.VectorCol, Features: p.FeatureCols, Categorical: p.CategoricalCols, CategoricalAt: p.CategoricalAt,
		Label: p.LabelCol, LabelUpper: p.LabelUpperCol, Weight: p.WeightCol, Margins: margins, Group: p.GroupCol, Skip: p.Skip, CheckLabel: p.checkLabel(),
	}
}

// checkLabel returns the objective's check of a single label, or nil if the objective has no
// such check.
func (p *Params) checkLabel() func(v float64) error {
	if p.Objective == Custom || p.Objective.classes() || p.LabelUpperCol != "" {
		return nil
	}
	loss := newLoss(p, 0)
	return func(v float64) error { return loss.check(&Rows{N: 1, Label: []float64{v}}, 0) }
}

// growth returns the parameters of the grower. features finds a feature by name, categorical
// reports whether it is categorical, and dim is an upper bound of all feature numbers.
func (p *Params) growth(features func(name string) (int, error), categorical func(j int) bool, dim int) (grow.Params, error) {
	g := grow.Params{
		LeafWise: p.GrowPolicy == LossGuide, MaxDepth: p.MaxDepth, MaxLeaves: p.MaxLeaves,
		Lambda: p.Lambda, Alpha: p.Alpha, Gamma: p.MinSplitGain, MaxDeltaStep: p.MaxDeltaStep,
		MinChildWeight: p.MinChildWeight, MinRows: p.MinSamplesLeaf,
		ByTree: p.ColsampleByTree, ByLevel: p.ColsampleByLevel, ByNode: p.ColsampleByNode,
		MaxOneHot: p.MaxOneHot, MinCategoryRows: p.MinCategoryRows,
		LearnCategories: p.CategorySmooth == 0, CategorySmooth: max(p.CategorySmooth, 0), CategoryLambda: p.CategoryLambda,
		Seed: p.Seed,
	}
	if g.MaxCategories = p.MaxCategories; p.MaxCategories == 0 && !g.LearnCategories {
		g.MaxCategories, g.RootOfCategories = defaultCategories, true
	}
	for _, name := range slices.Sorted(maps.Keys(p.Monotone)) {
		j, err := features(name)
		if err != nil {
			return g, fmt.Errorf("monotone constraints: %w", err)
		}
		if p.Monotone[name] != 0 && categorical(j) {
			return g, fmt.Errorf("monotone constraints: feature %q is categorical: categories have no order", name)
		}
		if g.Monotone == nil {
			g.Monotone = make([]int8, dim)
		}
		g.Monotone[j] = int8(p.Monotone[name])
	}
	for i, names := range p.Interactions {
		var group []int
		for _, name := range names {
			j, err := features(name)
			if err != nil {
				return g, fmt.Errorf("interaction %d: %w", i, err)
			}
			group = append(group, j)
		}
		g.Interaction = append(g.Interaction, group)
	}
	return g, nil
}

// queue adds the queue to the job.
func (q *boosting) queue(b *engine.Builder) *engine.Dataset {
	queue := q.table.Init(comqueue.New(b, Kind))
	for _, e := range q.sets {
		queue = e.table.Init(queue)
	}
	queue.Begin(q.beginKeeping).Init(q.open).
		Add(comqueue.Named("limits", comqueue.ForEachShard(limits, q.measureLimits))).
		Add(comqueue.AllReduce(limits, comqueue.Max)).
		Add(comqueue.Named("sums", comqueue.ForEachShard(sums, q.measureSums))).
		Add(comqueue.AllReduce(sums)).
		Add(comqueue.Named("prior", comqueue.Do(q.beginPrior)))
	if q.quantiles != nil {
		add(queue, q.quantiles.stages())
	}
	queue.Add(comqueue.Named("start", comqueue.Do(q.finishPrior)))
	if q.params.DART {
		queue.Add(comqueue.Named("drop", comqueue.Do(q.dropTrees)))
	}
	if q.scores != nil {
		queue.Add(comqueue.Named("scores", comqueue.Do(q.beginSampling)))
		add(queue, q.scores.stages())
	}
	queue.Add(comqueue.Named("gradients", comqueue.Do(q.begin)))
	add(queue, q.grower.Stages())
	if q.params.renews() {
		queue.Add(comqueue.Named("renew", comqueue.Do(q.beginRenewal)))
		add(queue, q.quantiles.stages())
		queue.Add(comqueue.Named("rest", comqueue.ForEachShard(rest, q.sumRest))).
			Add(comqueue.AllReduce(rest))
	}
	queue.Add(comqueue.Named("take", comqueue.Do(q.take))).
		Add(comqueue.Named("measure", comqueue.ForEachShard(measures, q.measure))).
		Add(comqueue.AllReduce(measures))
	if q.ordered {
		queue.Add(comqueue.Named("order", comqueue.Do(q.order))).Add(comqueue.Gather(ordering, ordered))
	}
	return queue.Add(comqueue.Named("note", comqueue.Do(q.note))).
		SetCompareCriterionOfNode0(q.stopped).
		SetMaxIter(q.params.NumTrees).
		CloseOnNode0(signature.ModelCloser(q.label, q.finish)).
		Exec()
}

// add adds stages to a queue.
func add(q *comqueue.IterativeComQueue, stages []comqueue.Stage) {
	for _, s := range stages {
		q.Add(s)
	}
}
