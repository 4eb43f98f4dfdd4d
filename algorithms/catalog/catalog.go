package catalog

import (
	"fmt"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/fm"
	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/gmm"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/mlp"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/naivebayes"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/algorithms/svm"
)

// Kinds returns every kind of model. The kinds that have estimators come first.
func Kinds() []model.Kind {
	return append(estimators(), prepare.Kinds()...)
}

// estimators returns the kinds of models that predict.
func estimators() []model.Kind {
	return []model.Kind{
		kind(kmeans.Params{}, "the cluster whose centre is nearest", kmeans.Decode),
		kind(gmm.Params{}, "clusters by a mixture of Gaussian distributions", gmm.Decode),
		kind(linear.Params{}, "numbers by linear regression", linear.Decode),
		kind(logistic.Params{}, "classes by logistic regression", logistic.Decode),
		kind(naivebayes.Params{}, "classes by naive Bayes", naivebayes.Decode),
		kind(svm.LinearSVC{}, "classes by linear support vector machines", svm.DecodeSVC),
		kind(svm.LinearSVR{}, "numbers by a linear support vector machine", svm.DecodeSVR),
		kind(fm.Params{}, "numbers or two classes by a factorisation machine", fm.Decode),
		kind(mlp.Params{}, "numbers or classes by a multilayer perceptron", mlp.Decode),
		kind(gbdt.Params{}, "numbers, classes or ranks by gradient boosted trees", gbdt.Decode),
		kind(forest.Params{}, "numbers or classes by a forest of trees", forest.Decode),
		kind(glm.Params{}, "means by generalised linear models", glm.Decode),
	}
}

// kind returns the Kind of the models that e trains and decode decodes.
func kind[M model.Model](e model.Estimator, about string, decode func(file []byte) (M, error)) model.Kind {
	return model.Kind{Name: e.Kind(), About: about, Estimator: e, Decode: func(file []byte) (model.Model, error) {
		m, err := decode(file)
		if err != nil {
			return nil, err
		}
		return m, nil
	}}
}

// Estimators returns every estimator, with the zero values of its parameters.
func Estimators() (all []model.Estimator) {
	for _, k := range estimators() {
		all = append(all, k.Estimator)
	}
	return all
}

// Decode decodes the file of a model of any kind in the catalog.
func Decode(file []byte) (model.Model, error) {
	name, err := model.KindOf(file)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, k := range Kinds() {
		if k.Name == name {
			return k.Decode(file)
		}
		names = append(names, k.Name)
	}
	return nil, fmt.Errorf("model of kind %q: this program knows %s", name, strings.Join(names, ", "))
}

// Bind returns a Step that applies m to single rows, and adds the columns that m computes to
// the layout. These are the columns that Transform adds in a job. Bind returns an error if m
// does not implement model.Binder.
func Bind(m model.Model, l *model.Layout) (model.Step, error) {
	if b, ok := m.(model.Binder); ok {
		return b.Bind(l)
	}
	return nil, fmt.Errorf("a model of kind %q cannot score single rows: apply it in a job", m.Kind())
}
