package gbdt

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/enum"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// problems collects the errors of a check.
type problems []error

func (e *problems) add(format string, a ...any) { *e = append(*e, fmt.Errorf(format, a...)) }

// share checks that v is in (0, 1], or 0 for the default.
func (e *problems) share(name string, v float64) {
	if !(v >= 0 && v <= 1) {
		e.add("%s is %v: want a share above 0, at most 1, or 0 for the default", name, v)
	}
}

// finite checks that v is neither NaN nor infinite.
func (e *problems) finite(name string, v float64) {
	if !kernel.Finite(v) {
		e.add("%s is %v: want a number", name, v)
	}
}

// positive checks that v is finite and 0 or more.
func (e *problems) positive(name string, v float64) {
	if !(v >= 0 && kernel.Finite(v)) {
		e.add("%s is %v: want a number of 0 or more", name, v)
	}
}

// count checks that v is from least to most.
func (e *problems) count(name string, v, least, most int) {
	if v < least || v > most {
		e.add("%s is %d: want %d to %d", name, v, least, most)
	}
}

// Validate returns all errors about the parameters, joined.
func (p Params) Validate() error {
	var e problems
	p.checkColumns(&e)
	p.checkObjective(&e)
	p.checkTrees(&e)
	p.checkSampling(&e)
	p.checkMeasuring(&e)
	return errors.Join(e...)
}

func (p *Params) checkColumns(e *problems) {
	*e = append(*e, p.columns(nil).Validate(bins.NumberLabel)...)
	if p.LabelUpperCol != "" && p.Objective != AFT {
		e.add("LabelUpperCol is for AFT, and Objective is %v", p.Objective)
	}
	if (p.GroupCol != "") != (p.Objective == LambdaMART) && p.Objective != Custom {
		if p.GroupCol == "" {
			e.add("GroupCol is empty: LambdaMART ranks the rows of each query, so name the column of queries")
		} else {
			e.add("GroupCol is for LambdaMART and Custom, and Objective is %v", p.Objective)
		}
	}
	*e = append(*e, signature.Names{Prediction: p.PredictionCol, Probability: p.ProbabilityCol}.Check())
}

func (p *Params) checkObjective(e *problems) {
	*e = append(*e, enum.Check(p.Objective)...)
	if (p.Objective == Custom) != (p.CustomObjective != nil) {
		e.add("the objective Custom and CustomObjective go together: Objective is %v", p.Objective)
	}
	if p.CustomObjective != nil {
		if err := p.CustomObjective.validate(); err != nil {
			*e = append(*e, err)
		}
	}
	if !(p.QuantileAt >= 0 && p.QuantileAt < 1) {
		e.add("QuantileAt is %v: want a number between 0 and 1, or 0 for 0.5", p.QuantileAt)
	}
	e.positive("HuberDelta", p.HuberDelta)
	if p.TweediePower != 0 && !(p.TweediePower > 1 && p.TweediePower < 2) {
		e.add("TweediePower is %v: want a number between 1 and 2, or 0 for %v", p.TweediePower, defaultTweedie)
	}
	*e = append(*e, enum.Check(p.Time)...)
	e.positive("TimeScale", p.TimeScale)
	e.count("RankTruncation", p.RankTruncation, 0, math.MaxInt32)
	for i, v := range p.Base {
		e.finite(fmt.Sprintf("Base[%d]", i), v)
	}
	if p.Base != nil && p.MarginCols != nil {
		e.add("both Base and MarginCols are set: set one of them")
	}
	p.checkClassWeights(e)
	p.checkStart(e)
}

func (p *Params) checkClassWeights(e *problems) {
	e.positive("ScalePosWeight", p.ScalePosWeight)
	if p.ScalePosWeight != 0 && p.Objective != Logistic {
		e.add("ScalePosWeight is for Logistic, and Objective is %v", p.Objective)
	}
	if (p.Balanced || len(p.ClassWeights) > 0) && !p.Objective.classes() {
		e.add("class weights are for Logistic and Softmax, and Objective is %v", p.Objective)
	}
	if p.Balanced && len(p.ClassWeights) > 0 || p.ScalePosWeight != 0 && (p.Balanced || len(p.ClassWeights) > 0) {
		e.add("more than one of ScalePosWeight, ClassWeights and Balanced is set: choose one")
	}
	*e = append(*e, bins.CheckClassWeights(p.ClassWeights))
}

func (p *Params) checkTrees(e *problems) {
	e.count("NumTrees", p.NumTrees, 0, maxTrees)
	e.positive("LearningRate", p.LearningRate)
	*e = append(*e, enum.Check(p.GrowPolicy)...)
	e.count("MaxDepth", p.MaxDepth, -1, math.MaxInt32)
	if p.MaxLeaves != 0 {
		e.count("MaxLeaves", p.MaxLeaves, 2, 1<<24)
	}
	if p.MaxBins != 0 {
		e.count("MaxBins", p.MaxBins, 2, defaultBins)
	}
	e.finite("MinChildWeight", p.MinChildWeight)
	e.count("MinSamplesLeaf", p.MinSamplesLeaf, 0, math.MaxInt32)
	e.finite("Lambda", p.Lambda)
	e.positive("Alpha", p.Alpha)
	e.positive("MinSplitGain", p.MinSplitGain)
	e.finite("MaxDeltaStep", p.MaxDeltaStep)
	e.count("MaxOneHot", p.MaxOneHot, 0, defaultBins)
	e.count("MaxCategories", p.MaxCategories, 0, math.MaxInt32)
	e.count("MinCategoryRows", p.MinCategoryRows, 0, math.MaxInt32)
	e.finite("CategorySmooth", p.CategorySmooth)
	e.finite("CategoryLambda", p.CategoryLambda)
	for _, name := range slices.Sorted(maps.Keys(p.Monotone)) {
		if v := p.Monotone[name]; v < -1 || v > 1 {
			e.add("Monotone of %q is %d: want -1, 0 or 1", name, v)
		} else if v != 0 && slices.Contains(p.CategoricalCols, name) {
			e.add("feature %q has a monotone constraint and is categorical: categories have no order", name)
		}
	}
	for i, names := range p.Interactions {
		if len(names) == 0 {
			e.add("Interactions[%d] is empty: name the features that may be combined", i)
		}
	}
}

func (p *Params) checkSampling(e *problems) {
	e.share("Subsample", p.Subsample)
	e.share("TopRate", p.TopRate)
	e.share("OtherRate", p.OtherRate)
	if top, other := cmp.Or(p.TopRate, defaultTopRate), cmp.Or(p.OtherRate, defaultOtherRate); p.GOSS && top+other > 1 {
		e.add("TopRate %v and OtherRate %v are more than all rows", top, other)
	}
	if p.GOSS && p.Subsample != 0 && p.Subsample != 1 {
		e.add("both GOSS and Subsample are set: choose one")
	}
	e.share("ColsampleByTree", p.ColsampleByTree)
	e.share("ColsampleByLevel", p.ColsampleByLevel)
	e.share("ColsampleByNode", p.ColsampleByNode)
	e.share("DropRate", p.DropRate)
	if !(p.SkipDrop <= 1) {
		e.add("SkipDrop is %v: want a share, or a negative number for none", p.SkipDrop)
	}
}

func (p *Params) checkMeasuring(e *problems) {
	seen := map[string]bool{}
	for _, name := range p.Metrics {
		if _, err := parseMetric(name, p); err != nil {
			*e = append(*e, err)
		} else if seen[name] {
			e.add("Metrics has %q twice", name)
		}
		seen[name] = true
	}
	for i := range p.CustomMetrics {
		m := &p.CustomMetrics[i]
		if err := m.validate(); err != nil {
			*e = append(*e, fmt.Errorf("CustomMetrics[%d]: %w", i, err))
		} else if seen[m.Name] {
			e.add("there are two metrics %q", m.Name)
		}
		seen[m.Name] = true
	}
	e.count("EarlyStoppingRounds", p.EarlyStoppingRounds, 0, maxTrees)
	e.positive("EarlyStoppingTolerance", p.EarlyStoppingTolerance)
	if !(p.ValidationFraction >= 0 && p.ValidationFraction < 1) {
		e.add("ValidationFraction is %v: want a share below 1", p.ValidationFraction)
	}
	if p.ValidationFraction > 0 && p.Objective == LambdaMART {
		e.add("ValidationFraction draws rows, and LambdaMART needs whole queries: give an evaluation set")
	}
}
