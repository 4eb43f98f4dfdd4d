package main

import (
	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/algorithms/selection"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// preparations adds a pipeline with every stage that prepares features, which ends with an
// estimator.
func preparations(b *engine.Builder, e *env) error {
	one := func(name string) []string { return []string{name} }
	p := pipeline.Pipeline{Stages: []model.Stage{
		prepare.Imputer{Columns: []string{"gap", "city"}, Strategies: []prepare.Strategy{prepare.Mean, prepare.Mode}},
		prepare.StringIndexer{Columns: one("kind"), Outputs: one("number")},
		prepare.OneHotEncoder{Columns: one("city"), Outputs: one("hot")},
		prepare.FeatureHasher{Columns: []string{"city", "kind", "gap"}, Output: "hashed", Size: 32},
		prepare.StandardScaler{Columns: []string{"any", "gap"}},
		prepare.MinMaxScaler{Columns: one("tiny")},
		prepare.MaxAbsScaler{Columns: []string{"huge", "hashed"}},
		prepare.RobustScaler{Columns: one("other")},
		prepare.QuantileDiscretizer{Columns: one("amount"), Buckets: 4},
		prepare.Bucketizer{Columns: one("step"), Bounds: [][]float64{{0.5, 2}}},
		prepare.PolynomialFeatures{Columns: []string{"unit", "tiny"}, Output: "products"},
		prepare.PCA{Columns: []string{"unit", "huge", "any", "other"}, K: 3, Whiten: true},
		prepare.Normalizer{Columns: one("products"), Outputs: one("directions")},
		prepare.VectorAssembler{Columns: []string{"any", "number", "amount", "step", "gap", "components", "directions", "hot", "hashed"}},
		linear.Params{VectorCol: "features", LabelCol: "target", L2: 0.1, MaxIter: 4},
	}}
	e.train(b, "pipeline", e.table(b), p, "features", "components", "products", "prediction")
	return nil
}

// evaluations adds jobs that make every evaluation report, for predictions that are columns of
// the rows.
func evaluations(b *engine.Builder, e *env) error {
	rows := e.table(b)
	report := func(name string, d *engine.Dataset) *engine.Dataset {
		engine.Collect(d, name)
		return d
	}
	binary := report("binary", evaluate.Binary(rows, evaluate.BinaryOptions{
		LabelCol: "good", ScoreCol: "extreme", WeightCol: "weight", Margins: true, CurvePoints: 20,
	}))
	report("curve", evaluate.Curve(binary))
	classes := report("multiclass", evaluate.Multiclass(rows, evaluate.MulticlassOptions{
		LabelCol: "step", PredictionCol: "count", WeightCol: "weight",
	}))
	report("confusion", evaluate.Confusion(classes))
	report("regression", evaluate.Regression(rows, evaluate.RegressionOptions{
		LabelCol: "extreme", PredictionCol: "any", WeightCol: "weight",
	}))
	report("deviance", evaluate.Regression(rows, evaluate.RegressionOptions{
		LabelCol: "amount", PredictionCol: "weight", Deviance: evaluate.GammaDeviance, NoMedian: true,
	}))
	report("clustering", evaluate.Clustering(rows, evaluate.ClusteringOptions{
		ClusterCol: "kind", VectorCol: "wild", LabelCol: "step", WeightCol: "weight",
	}))
	report("ranking", evaluate.Ranking(rows, evaluate.RankingOptions{QueryCol: "kind", LabelCol: "count", ScoreCol: "other"}))
	return nil
}

// selections adds model selections, which compare candidates by cross-validation and train the
// best candidate.
func selections(b *engine.Builder, e *env) error {
	rows := e.table(b)
	stageOf := func(p logistic.Params) model.Stage {
		return pipeline.Pipeline{Stages: []model.Stage{
			prepare.MinMaxScaler{Columns: []string{"wild"}, Outputs: []string{"scaled"}}, p,
		}}
	}
	candidates := selection.Grid(logistic.Params{VectorCol: "scaled", LabelCol: "kind", MaxIter: 3}, stageOf,
		selection.Over("l2", func(p *logistic.Params, v float64) { p.L2 = v }, 1, 0.01))
	found := selection.CrossValidate(rows, candidates, selection.Options{
		K: 2, Stratify: "kind", Refit: true,
		Metrics: selection.Multiclass(evaluate.MulticlassOptions{
			LabelCol: "kind", PredictionCol: "prediction", WeightCol: "weight",
			ProbabilityCols: []string{"probability"}, Classes: []string{"p", "q", "r"},
		}, "log_loss", "accuracy"),
	})
	engine.Collect(found.Scores, "scores")
	engine.Collect(found.Best, modelPrefix+"best")
	for i, f := range selection.KFold(rows, 3, 5) {
		engine.Collect(operators.Select(f.Test, "extreme"), "fold "+string(rune('0'+i)))
	}
	return nil
}
