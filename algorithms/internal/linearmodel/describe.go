package linearmodel

import "github.com/superstep-ml/superstep/algorithms/model"

// Describe implements model.Describer.
func (m *Model) Describe(feature func(i int) string) model.Description {
	return m.DescribeClasses(nil, feature)
}

// DescribeClasses describes a model with one margin, or with one margin for each class. The
// description has the coefficients, and also standard errors if the summary has them.
func (m *Model) DescribeClasses(classes []string, feature func(i int) string) (d model.Description) {
	name := model.Chosen(m.Columns, feature)
	table := m.Summary.Inference
	if table == nil {
		d.AddCoefficients(m.Coefficients, m.Intercepts, classes, name)
		return d
	}
	var rows [][]any
	var terms []model.Term
	for k, term := range table.Terms {
		called, ofFeature := term.Name, k < len(m.Coefficients[0])
		if ofFeature {
			called = name(k)
		}
		row, t := []any{called, term.Estimate, nil, nil, nil}, model.Term{Name: called, Value: term.Estimate}
		if term.Defined {
			row, t.StdError = []any{called, term.Estimate, term.StdError, term.Statistic, term.PValue}, term.StdError
		}
		rows = append(rows, row)
		if ofFeature { // terms does not have the intercept, because its unit differs from the units of coefficients
			terms = append(terms, t)
		}
	}
	d.AddTerms([]string{"std error", table.Statistic, "p value"}, rows, terms)
	return d
}
