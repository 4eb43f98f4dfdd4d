package main

import (
	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// boosted adds jobs that train gradient-boosted trees on numbers, text, sparse rows and ranking
// queries. Their objectives cover every way in which gradients are summed over rows.
func boosted(b *engine.Builder, e *env) error {
	rows := e.table(b)
	base := gbdt.Params{
		FeatureCols: []string{"any", "tiny", "huge", "other", "unit", "gap", "city"},
		LabelCol:    "extreme", WeightCol: "weight", NumTrees: 3, MaxDepth: 4,
	}
	drawn, leafwise, classes, counts, quantiles := base, base, base, base, base
	drawn.LabelCol, drawn.Subsample, drawn.ColsampleByNode, drawn.DART = "target", 0.7, 0.6, true
	leafwise.LabelCol, leafwise.Objective, leafwise.GrowPolicy, leafwise.MaxLeaves = "good", gbdt.Logistic, gbdt.LossGuide, 9
	classes.LabelCol, classes.Objective, classes.GOSS = "kind", gbdt.Softmax, true
	counts.LabelCol, counts.Objective, counts.ValidationFraction = "count", gbdt.Poisson, 0.25
	quantiles.LabelCol, quantiles.Objective, quantiles.QuantileAt = "extreme", gbdt.Quantile, 0.7
	e.train(b, "squared", rows, base, "prediction")
	e.train(b, "drawn", rows, drawn, "prediction")
	e.train(b, "leafwise", rows, leafwise, "prediction", "probability")
	e.train(b, "classes", rows, classes, "prediction", "probability")
	e.train(b, "counts", rows, counts, "prediction")
	e.train(b, "quantiles", rows, quantiles, "prediction")

	patients := operators.ReadLibSVM(b, e.Heart, operators.LibSVMOptions{})
	e.train(b, "sparse", patients, gbdt.Params{VectorCol: "features", LabelCol: "label", Objective: gbdt.Logistic, NumTrees: 3}, "prediction", "probability")
	ranked := gbdt.Params{VectorCol: "tame", LabelCol: "count", GroupCol: "city", Objective: gbdt.LambdaMART, NumTrees: 3, Skip: true}
	named := operators.Filter(rows, func(s struct{ City *string }) bool { return s.City != nil })
	few := operators.Filter(named, func(s struct{ Count int64 }) bool { return s.Count < 5 })
	e.train(b, "ranked", few, ranked, "prediction")
	return nil
}

// forests adds jobs that train random forests, extra trees and single trees.
func forests(b *engine.Builder, e *env) error {
	rows := e.table(b)
	base := forest.Params{
		FeatureCols: []string{"any", "tiny", "huge", "unit", "gap", "city"},
		LabelCol:    "extreme", WeightCol: "weight", NumTrees: 4, MaxDepth: 6, OOBScore: true,
	}
	classes, extra, single, spread := base, base, base, base
	classes.LabelCol, classes.Task = "kind", forest.Classification
	extra.Method, extra.OOBScore = forest.ExtraTrees, false
	single.Method, single.NumTrees, single.OOBScore = forest.SingleTree, 1, false
	spread.LabelCol, spread.Task, spread.Criterion, spread.Memory = "kind", forest.Classification, forest.Entropy, 1
	extra.MaxDepth, single.MaxDepth, spread.MaxDepth = 0, 0, 0 // 0 means that trees grow until leaves are pure
	e.train(b, "numbers", rows, base, "prediction")
	e.train(b, "classes", rows, classes, "prediction", "probability")
	e.train(b, "extra", rows, extra, "prediction")
	e.train(b, "single", rows, single, "prediction")
	e.train(b, "spread", rows, spread, "prediction", "probability")
	return nil
}
