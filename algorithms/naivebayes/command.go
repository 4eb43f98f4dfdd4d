package naivebayes

import "github.com/superstep-ml/superstep/algorithms/model"

var _ model.Estimator = Params{}

// Predicts implements model.Predictor.
func (Params) Predicts() model.Prediction {
	return model.Prediction{Target: model.Class, Column: "prediction", Scores: "probability"}
}

// Command implements model.Estimator.
func (Params) Command() model.Command {
	return model.Command{Name: "naivebayes", About: "classes by naive Bayes", Flags: []model.Flag{
		{Name: "family", Param: "Family", Tag: `placeholder:"FAMILY" help:"Distribution of features within a class: gaussian (the default), multinomial or complement for counts, or bernoulli." default:"gaussian"`,
			Words: map[string]string{"Bernoulli": "bernoulli"}},
		{Name: "smoothing", Param: "Smoothing", Tag: `want:">0.." of:"family=multinomial/complement/bernoulli" placeholder:"COUNT" help:"Added to each count (default: 1)."`},
		{Name: "var-smoothing", Param: "VarSmoothing", Tag: `want:">0.." of:"family=gaussian" placeholder:"SHARE" help:"Of gaussian: this times the largest variance is added to all (default: 0.000000001)."`},
		{Name: "binarize", Param: "Binarize", Tag: `want:".." of:"family=bernoulli" placeholder:"VALUE" help:"Of bernoulli: the value above which a feature is present (default: 0)."`},
		{Name: "priors", Param: "Priors", Tag: `want:">0..1" of:"family!=complement" placeholder:"CLASS=SHARE" help:"Prior probabilities of all classes, such as yes=0.2;no=0.8 (default: the shares of the classes among the rows)."`},
		{Name: "uniform-priors", Param: "UniformPriors", Tag: `of:"family!=complement" help:"Give all classes the same prior probability."`},
	}}
}

// Predicts implements model.Predictor.
func (m *Model) Predicts() model.Prediction {
	return Params{}.Predicts().Named(m.PredictionCol, m.ProbabilityCol, m.Classes.Values)
}

// Describe implements model.Describer. It describes the classes, and the means or counts of the
// features in each class.
func (m *Model) Describe(feature func(i int) string) model.Description {
	classes := model.Table{Title: "classes", Columns: []string{"class", "prior", "weight"}}
	for c, name := range m.Classes.Values {
		classes.Rows = append(classes.Rows, []any{name, m.Priors[c], m.Weights[c]})
	}
	matrix, title := m.Counts, "counts"
	if m.Means != nil {
		matrix, title = m.Means, "means"
	}
	within := model.Table{Title: title, Columns: append([]string{"feature"}, m.Classes.Values...)}
	name := model.Chosen(m.Columns, feature)
	for k := range matrix[0] {
		row := []any{name(k)}
		for c := range matrix {
			row = append(row, matrix[c][k])
		}
		within.Rows = append(within.Rows, row)
	}
	return model.Description{Settings: []model.Fact{{Name: "family", Value: m.Family.String()}}, Tables: []model.Table{classes, within}}
}
