package builtin

import (
	"strconv"

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
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/svm"
)

// stagesOf returns the models that rows go through: of a pipeline its stages.
func stagesOf(m model.Model) []model.Model {
	p, ok := m.(*pipeline.Model)
	if !ok {
		return []model.Model{m}
	}
	var all []model.Model
	for _, s := range p.Stages() {
		all = append(all, stagesOf(s)...)
	}
	return all
}

// lastOf returns the model that predicts.
func lastOf(m model.Model) model.Model {
	all := stagesOf(m)
	return all[len(all)-1]
}

// classesOf returns the classes that a model predicts, as text and in their order; nil
// where it predicts none.
func classesOf(m model.Model) []string {
	switch m := m.(type) {
	case *logistic.Model:
		return m.Classes.Values
	case *naivebayes.Model:
		return m.Classes.Values
	case *svm.SVCModel:
		return m.Classes.Values
	case *fm.Model:
		return m.Classes.Values
	case *mlp.Model:
		return m.Classes.Values
	case *gbdt.Model:
		return m.Classes.Values
	case *forest.Model:
		return m.Classes.Values
	}
	return nil
}

// componentsOf returns the numbers of the components of a mixture.
func componentsOf(m model.Model) []string {
	var all []string
	if m, ok := m.(*gmm.Model); ok {
		for c := range m.Weights {
			all = append(all, strconv.Itoa(c))
		}
	}
	return all
}

// predictionColumn, probabilityColumn and distanceColumn return the columns that a model adds:
// those that training named, or else those of its kind, which may be none.
func predictionColumn(m model.Model) string {
	named := ""
	switch m := m.(type) {
	case *kmeans.Model:
		named = m.PredictionCol
	case *gmm.Model:
		named = m.PredictionCol
	case *linear.Model:
		named = m.PredictionCol
	case *logistic.Model:
		named = m.PredictionCol
	case *naivebayes.Model:
		named = m.PredictionCol
	case *svm.SVCModel:
		named = m.PredictionCol
	case *glm.Model:
		named = m.PredictionCol
	case *svm.SVRModel:
		named = m.PredictionCol
	case *fm.Model:
		named = m.PredictionCol
	case *mlp.Model:
		named = m.PredictionCol
	case *gbdt.Model:
		named = m.PredictionCol
	case *forest.Model:
		named = m.PredictionCol
	}
	if named == "" {
		named = kindsOf[m.Kind()].prediction
	}
	return named
}

func distanceColumn(m model.Model) string {
	if m, ok := m.(*kmeans.Model); ok && m.DistanceCol != "" {
		return m.DistanceCol
	}
	return kindsOf[m.Kind()].distance
}

func probabilityColumn(m model.Model) string {
	named := ""
	switch m := m.(type) {
	case *gmm.Model:
		named = m.ProbabilityCol
	case *logistic.Model:
		named = m.ProbabilityCol
	case *naivebayes.Model:
		named = m.ProbabilityCol
	case *svm.SVCModel:
		named = m.DecisionCol
	case *fm.Model:
		named = m.ProbabilityCol
	case *mlp.Model:
		named = m.ProbabilityCol
	case *gbdt.Model:
		named = m.ProbabilityCol
	case *forest.Model:
		named = m.ProbabilityCol
	}
	if named == "" {
		named = kindsOf[m.Kind()].probability
	}
	return named
}
