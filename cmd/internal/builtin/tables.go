package builtin

import (
	"cmp"
	"math"
	"slices"
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
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/algorithms/svm"
)

// tables adds the tables of a model; feature names features.
func (p *portrait) tables(m model.Model, feature func(i int) string) {
	switch m := m.(type) {
	case *kmeans.Model:
		p.vectors("centres", "cluster", "size", m.Sizes, m.Centers, feature)
	case *gmm.Model:
		p.vectors("means", "component", "weight", m.Weights, m.Means, feature)
	case *linear.Model:
		p.linear(m.Coefficients, m.Intercepts, m.Columns, nil, m.Summary.Inference, feature)
	case *logistic.Model:
		p.linear(m.Coefficients, m.Intercepts, m.Columns, m.Classes.Values, m.Summary.Inference, feature)
	case *glm.Model:
		p.linear(m.Coefficients, m.Intercepts, m.Columns, nil, m.Summary.Inference, feature)
		p.facts = append([]fact{{"family", m.Family.String()}, {"link", m.Link.String()}}, p.facts...)
	case *svm.SVCModel:
		p.linear(m.Coefficients, m.Intercepts, m.Columns, m.Classes.Values, nil, feature)
	case *svm.SVRModel:
		p.linear(m.Coefficients, m.Intercepts, m.Columns, nil, nil, feature)
	case *fm.Model:
		p.linear([][]float64{m.Linear}, []float64{m.Intercept}, m.Columns, nil, nil, feature)
		if len(m.Factors) > 0 {
			p.facts = append(p.facts, fact{"factors", strconv.Itoa(len(m.Factors[0]))})
		}
	case *mlp.Model:
		t := tabled{Title: "layers", Columns: []string{"layer", "units", "inputs"}}
		for i, l := range m.Layers {
			t.Rows = append(t.Rows, []any{strconv.Itoa(i + 1), float64(len(l.Biases)), float64(len(l.Weights))})
		}
		p.Tables = append(p.Tables, t)
		p.facts = append(p.facts, fact{"activation", m.Activation.String()})
	case *naivebayes.Model:
		p.naiveBayes(m, feature)
	case *gbdt.Model:
		p.boosted(m)
		p.importances(m.Ensemble, func(i int) string {
			if m.Columns != nil {
				i = int(m.Columns[i])
			}
			return feature(i)
		})
	case *forest.Model:
		p.outOfBag(m)
		p.importances(m.Trees, feature)
	case *prepare.ImputerModel:
		t := tabled{Title: "put in place of missing values", Columns: []string{"column", "value"}}
		for i, f := range m.Fills {
			value := any(f.Value)
			if len(f.Numbers) > 0 {
				value = f.Numbers[0]
			}
			t.Rows = append(t.Rows, []any{m.Params.Columns[i], value})
		}
		p.Tables = append(p.Tables, t)
	case *prepare.OneHotModel:
		p.values(m.Params.Columns, m.Values)
	case *prepare.IndexerModel:
		p.values(m.Params.Columns, m.Values)
	}
}

// vectors adds a table with a vector, and a number, for each cluster.
func (p *portrait) vectors(title, each, what string, numbers []float64, vectors [][]float64, feature func(i int) string) {
	t := tabled{Title: title, Columns: []string{each, what}}
	for i := range len(vectors[0]) {
		p.Columns = append(p.Columns, feature(i))
	}
	t.Columns = append(t.Columns, p.Columns...)
	for c, v := range vectors {
		row := []any{strconv.Itoa(c), numbers[c]}
		for _, x := range v {
			row = append(row, x)
		}
		t.Rows = append(t.Rows, row)
	}
	p.Tables = append(p.Tables, t)
}

// values adds a table of the distinct values of columns.
func (p *portrait) values(columns []string, values [][]string) {
	t := tabled{Title: "values", Columns: []string{"column", "number", "value"}}
	for i, list := range values {
		for k, v := range list {
			t.Rows = append(t.Rows, []any{columns[i], float64(k), v})
		}
	}
	p.Tables = append(p.Tables, t)
}

// linear adds the coefficients of a model that is linear in its features: with standard
// errors where there are, and a column for each class where there are several. The most
// important go first where there are too many to be shown.
func (p *portrait) linear(coefficients [][]float64, intercepts []float64, columns []int32, classes []string, inference *linear.Inference, feature func(i int) string) {
	name := func(k int) string {
		if columns != nil {
			k = int(columns[k])
		}
		return feature(k)
	}
	t := tabled{Title: "coefficients", Columns: []string{"feature"}}
	switch {
	case inference != nil:
		t.Columns = append(t.Columns, "estimate", "std error", inference.Statistic, "p value")
		for k, term := range inference.Terms {
			called := term.Name
			if k < len(coefficients[0]) {
				called = name(k)
			}
			row := []any{called, term.Estimate, nil, nil, nil}
			c := coefficient{name: called, value: term.Estimate}
			if term.Defined {
				row, c.stdError = []any{called, term.Estimate, term.StdError, term.Statistic, term.PValue}, term.StdError
			}
			t.Rows = append(t.Rows, row)
			if k < len(coefficients[0]) { // pictures leave the intercept out: it has no scale in common
				p.coefficients = append(p.coefficients, c)
			}
		}
	default:
		for m := range coefficients {
			of := "estimate"
			if len(coefficients) > 1 && m < len(classes) {
				of = classes[m]
			}
			t.Columns = append(t.Columns, of)
		}
		for k := range coefficients[0] {
			row := []any{name(k)}
			for m := range coefficients {
				row = append(row, coefficients[m][k])
				called := name(k)
				if len(coefficients) > 1 {
					called += ", " + t.Columns[m+1]
				}
				p.coefficients = append(p.coefficients, coefficient{name: called, value: coefficients[m][k]})
			}
			t.Rows = append(t.Rows, row)
		}
		row := []any{"(intercept)"}
		for _, c := range intercepts {
			row = append(row, c)
		}
		t.Rows = append(t.Rows, row)
	}
	if len(t.Rows) > shownTerms {
		t.Title += ", the largest first"
		by := 1
		if inference != nil {
			t.Title, by = "coefficients, the surest first", 3
		}
		slices.SortStableFunc(t.Rows, func(a, b []any) int { return cmp.Compare(size(b, by), size(a, by)) })
	}
	p.Tables = append(p.Tables, t)
}

// size returns the absolute value of a row's number, or, by the first column of
// coefficients, the largest of them.
func size(row []any, by int) float64 {
	most := 0.0
	for i, v := range row[by:] {
		if x, ok := v.(float64); ok && (by == 1 || i == 0) && math.Abs(x) > most {
			most = math.Abs(x)
		}
	}
	return most
}

// naiveBayes adds the classes, and what is known of features within them.
func (p *portrait) naiveBayes(m *naivebayes.Model, feature func(i int) string) {
	p.facts = append([]fact{{"family", m.Family.String()}}, p.facts...)
	t := tabled{Title: "classes", Columns: []string{"class", "prior", "weight"}}
	for c, name := range m.Classes.Values {
		t.Rows = append(t.Rows, []any{name, m.Priors[c], m.Weights[c]})
	}
	p.Tables = append(p.Tables, t)
	matrix, title := m.Counts, "counts"
	if m.Means != nil {
		matrix, title = m.Means, "means"
	}
	t = tabled{Title: title, Columns: append([]string{"feature"}, m.Classes.Values...)}
	for k := range matrix[0] {
		j := k
		if m.Columns != nil {
			j = int(m.Columns[k])
		}
		row := []any{feature(j)}
		for c := range matrix {
			row = append(row, matrix[c][k])
		}
		t.Rows = append(t.Rows, row)
	}
	p.Tables = append(p.Tables, t)
}
