package main

import (
	"github.com/superstep-ml/superstep/algorithms/fm"
	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/gmm"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/mlp"
	"github.com/superstep-ml/superstep/algorithms/naivebayes"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/algorithms/svm"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// The workloads of this file train every supervised estimator and Gaussian mixtures, with each
// of their optimisers, for a few iterations. A few iterations are enough, because a dependence
// on the order of additions changes results from the first iteration on.

// regressions adds jobs that train linear regressions.
func regressions(b *engine.Builder, e *env) error {
	rows := e.table(b)
	base := linear.Params{VectorCol: "wild", LabelCol: "target", WeightCol: "weight", MaxIter: 6}
	squares, descent, huber, drawn := base, base, base, base
	squares.LabelCol = "extreme"
	descent.Method = optim.LBFGS
	huber.Huber = 0.75
	drawn.Method, drawn.MaxIter = optim.SGD, 2
	drawn.Stochastic = optim.Stochastic{Batch: 96, Momentum: 0.9, Average: true}
	e.train(b, "squares", rows, linear.Regression(squares), "prediction")
	e.train(b, "ridge", rows, linear.Ridge(0.01, descent), "prediction")
	e.train(b, "lasso", rows, linear.Lasso(0.05, base), "prediction")
	e.train(b, "huber", rows, huber, "prediction")
	e.train(b, "drawn", rows, linear.ElasticNet(0.01, 0, drawn), "prediction")
	return nil
}

// classifications adds jobs that train logistic regressions on dense and on sparse rows.
func classifications(b *engine.Builder, e *env) error {
	rows := e.table(b)
	base := logistic.Params{VectorCol: "wild", LabelCol: "good", WeightCol: "weight", MaxIter: 6}
	kinds := base
	kinds.LabelCol = "kind"
	plain, descent, lasso := base, kinds, kinds
	plain.Inference = true
	kinds.L2, kinds.Balanced, kinds.Method = 0.01, true, optim.Newton
	descent.Method = optim.LBFGS
	lasso.L1, lasso.L2 = 0.02, 0.01
	e.train(b, "newton", rows, plain, "prediction", "probability")
	e.train(b, "kinds", rows, kinds, "prediction", "probability")
	e.train(b, "descent", rows, descent, "prediction", "probability")
	e.train(b, "lasso", rows, lasso, "prediction", "probability")

	sparse := logistic.Params{VectorCol: "features", LabelCol: "label", L2: 0.01, MaxIter: 3}
	drawn := sparse
	drawn.Method, drawn.Stochastic = optim.SGD, optim.Stochastic{Update: optim.AdaGrad}
	patients := operators.ReadLibSVM(b, e.Heart, operators.LibSVMOptions{})
	e.train(b, "sparse", patients, sparse, "prediction", "probability")
	e.train(b, "drawn", patients, drawn, "prediction", "probability")
	return nil
}

// margins adds jobs that train support vector machines and generalised linear models.
func margins(b *engine.Builder, e *env) error {
	rows := e.table(b)
	hinge := svm.LinearSVC{VectorCol: "wild", LabelCol: "good", WeightCol: "weight", L2: 0.01, MaxIter: 8}
	kinds := hinge
	kinds.LabelCol, kinds.Squared = "kind", true
	e.train(b, "hinge", rows, hinge, "prediction", "decision")
	e.train(b, "kinds", rows, kinds, "prediction", "decision")
	e.train(b, "tube", rows, svm.LinearSVR{
		VectorCol: "wild", LabelCol: "target", WeightCol: "weight", Epsilon: 0.3, L2: 0.01, MaxIter: 8,
	}, "prediction")
	for _, m := range []struct {
		family glm.Family
		link   glm.Link
		label  string
	}{
		{glm.Gaussian, glm.Auto, "extreme"},
		{glm.Poisson, glm.Auto, "count"},
		{glm.Gamma, glm.Log, "amount"},
		{glm.Tweedie, glm.Log, "amount"},
	} {
		e.train(b, m.family.String(), rows, glm.Params{
			VectorCol: "wild", LabelCol: m.label, WeightCol: "weight", Family: m.family, Link: m.link, MaxIter: 5,
		}, "prediction")
	}
	return nil
}

// networks adds jobs that train multilayer perceptrons.
func networks(b *engine.Builder, e *env) error {
	rows := e.table(b)
	e.train(b, "numbers", rows, mlp.Params{
		VectorCol: "wild", LabelCol: "target", WeightCol: "weight", Hidden: []int{5}, Activation: mlp.Tanh, MaxIter: 4,
	}, "prediction")
	e.train(b, "classes", rows, mlp.Params{
		VectorCol: "wild", LabelCol: "kind", Task: mlp.Classification, Hidden: []int{4, 3}, MaxIter: 2,
		Method: optim.SGD, Stochastic: optim.Stochastic{Batch: 100, Update: optim.Adam},
	}, "prediction", "probability")
	return nil
}

// factors adds jobs that train factorisation machines.
func factors(b *engine.Builder, e *env) error {
	rows := e.table(b)
	e.train(b, "numbers", rows, fm.Params{
		VectorCol: "tame", LabelCol: "amount", WeightCol: "weight", Factors: 2, MaxIter: 6,
	}, "prediction")
	e.train(b, "classes", rows, fm.Params{
		VectorCol: "tame", LabelCol: "good", Task: fm.Classification, Factors: 3, L2Factors: 0.01, MaxIter: 6,
	}, "prediction", "probability")
	patients := operators.ReadLibSVM(b, e.Heart, operators.LibSVMOptions{})
	e.train(b, "sparse", patients, fm.Params{
		VectorCol: "features", LabelCol: "label", Task: fm.Classification, Factors: 2, MaxIter: 2,
		Method: optim.SGD, Stochastic: optim.Stochastic{Update: optim.AdaGrad},
	}, "prediction", "probability")
	return nil
}

// bayes adds jobs that train naive Bayes classifiers.
func bayes(b *engine.Builder, e *env) error {
	rows := operators.Vectorize(e.table(b), "counts", "step", "amount", "count", "weight")
	e.train(b, "gaussian", rows, naivebayes.Params{VectorCol: "wild", LabelCol: "kind", WeightCol: "weight"}, "prediction", "probability")
	for _, family := range []naivebayes.Family{naivebayes.Multinomial, naivebayes.Complement, naivebayes.Bernoulli} {
		e.train(b, family.String(), rows, naivebayes.Params{
			VectorCol: "counts", LabelCol: "kind", WeightCol: "weight", Family: family,
		}, "prediction", "probability")
	}
	return nil
}

// mixtures adds jobs that train Gaussian mixtures with every type of covariance.
func mixtures(b *engine.Builder, e *env) error {
	rows := e.table(b)
	for _, shape := range []gmm.Covariance{gmm.Full, gmm.Diagonal, gmm.Spherical, gmm.Tied} {
		points := "tame"
		if shape == gmm.Diagonal {
			points = "wild"
		}
		e.train(b, shape.String(), rows, gmm.Params{
			VectorCol: points, WeightCol: "weight", K: 3, Covariance: shape, MaxIter: 4, Tol: -1,
		}, "component", "probabilities")
	}
	return nil
}
