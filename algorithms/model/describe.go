package model

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// ShownRows is the largest number of rows of a table that are printed. In a longer table, the
// most important rows come first.
const ShownRows = 20

// Description has the information about a model that is shown to users in addition to the
// summary of its training.
type Description struct {
	// Settings are printed before the summary, and Facts are printed after it.
	Settings, Facts []Fact
	Tables          []Table
	// Features are the names of the components of the vectors of clusters, in order.
	Features []string
	// Coefficients and Importances are drawn in charts. They do not include intercepts.
	Coefficients, Importances []Term
	// Loss is the name of the quantity in Curves or Record. If Curves and Record are empty, the
	// losses in the record of the summary are shown.
	Loss   string
	Curves []Curve
	Record []float64
}

// Fact is a named value.
type Fact struct {
	Name  string
	Value any
}

// Table is a table to show to users. Its cells are strings, float64 values or nil.
type Table struct {
	Title   string   `json:"title"`
	Columns []string `json:"columns"`
	Rows    [][]any  `json:"rows"`
}

// Term is a value that a model has for a feature, such as a coefficient.
type Term struct {
	Name            string
	Value, StdError float64 // StdError is 0 if the model has no standard error for the feature
}

// Curve has the values of a quantity that was measured on a set of rows after each round of
// training.
type Curve struct {
	Name   string
	Values []float64
}

// Describer is a Model that has a Description in addition to its summary.
type Describer interface {
	// Describe describes the model. feature returns the name of the feature with number i.
	Describe(feature func(i int) string) Description
}

// AddVectors adds a table with one row for each cluster c. The row has the number c,
// numbers[c], and the components of vectors[c], whose names feature returns. The parameter each
// is the heading of the column of cluster numbers, and the parameter what is the heading of the
// column of numbers[c].
func (d *Description) AddVectors(title, each, what string, numbers []float64, vectors [][]float64, feature func(i int) string) {
	for i := range len(vectors[0]) {
		d.Features = append(d.Features, feature(i))
	}
	t := Table{Title: title, Columns: append([]string{each, what}, d.Features...)}
	for c, v := range vectors {
		row := []any{strconv.Itoa(c), numbers[c]}
		for _, x := range v {
			row = append(row, x)
		}
		t.Rows = append(t.Rows, row)
	}
	d.Tables = append(d.Tables, t)
}

// AddCoefficients adds a table of coefficients. It has a column for each class if there are
// several rows of coefficients.
func (d *Description) AddCoefficients(coefficients [][]float64, intercepts []float64, classes []string, feature func(k int) string) {
	t := Table{Title: "coefficients", Columns: []string{"feature"}}
	for m := range coefficients {
		of := "estimate"
		if len(coefficients) > 1 && m < len(classes) {
			of = classes[m]
		}
		t.Columns = append(t.Columns, of)
	}
	for k := range coefficients[0] {
		row := []any{feature(k)}
		for m := range coefficients {
			row = append(row, coefficients[m][k])
			name := feature(k)
			if len(coefficients) > 1 {
				name += ", " + t.Columns[m+1]
			}
			d.Coefficients = append(d.Coefficients, Term{Name: name, Value: coefficients[m][k]})
		}
		t.Rows = append(t.Rows, row)
	}
	row := []any{"(intercept)"}
	for _, c := range intercepts {
		row = append(row, c)
	}
	t.Rows = append(t.Rows, row)
	if len(t.Rows) > ShownRows {
		t.Title += ", the largest first"
		t.largestFirst(func(row []any) float64 { return largest(row[1:]) })
	}
	d.Tables = append(d.Tables, t)
}

// AddTerms adds a table of coefficients and their significance tests. columns has the headings
// of the columns that follow the columns feature and estimate; columns[1] must be the heading
// of the test statistic. features has the coefficients of the features, which are drawn in
// charts.
func (d *Description) AddTerms(columns []string, rows [][]any, features []Term) {
	t := Table{Title: "coefficients", Columns: append([]string{"feature", "estimate"}, columns...), Rows: rows}
	d.Coefficients = append(d.Coefficients, features...)
	if len(t.Rows) > ShownRows {
		t.Title += ", the surest first"
		t.largestFirst(func(row []any) float64 { return largest(row[3:4]) })
	}
	d.Tables = append(d.Tables, t)
}

// AddImportances adds a table of the importances of features, the most important first.
// Features that no split reads are left out.
func (d *Description) AddImportances(e *tree.Ensemble, feature func(i int) string) {
	t := Table{Title: "importance, the largest gain first", Columns: []string{"feature", "share of gain", "gain", "cover", "splits"}}
	total := 0.0
	all := e.Importances()
	for _, im := range all {
		total += im.TotalGain
	}
	for i, im := range all {
		if im.Splits == 0 {
			continue
		}
		share := math.NaN()
		if total > 0 {
			share = im.TotalGain / total
		}
		name := feature(i)
		t.Rows = append(t.Rows, []any{name, share, im.Gain(), im.Cover(), float64(im.Splits)})
		d.Importances = append(d.Importances, Term{Name: name, Value: share})
	}
	t.largestFirst(func(row []any) float64 { return row[1].(float64) })
	d.Tables = append(d.Tables, t)
}

// Chosen returns a function that returns the name of the k-th feature that a model uses.
// columns has the numbers of the features that the model uses; nil means all features. feature
// returns the name of the feature with a given number.
func Chosen(columns []int32, feature func(i int) string) func(k int) string {
	if columns == nil {
		return feature
	}
	return func(k int) string { return feature(int(columns[k])) }
}

// largestFirst sorts the rows by descending size. Rows of equal size keep their order.
func (t *Table) largestFirst(size func(row []any) float64) {
	slices.SortStableFunc(t.Rows, func(a, b []any) int { return cmp.Compare(size(b), size(a)) })
}

// largest returns the largest absolute value of the float64 values, or 0 if there are none.
func largest(values []any) (most float64) {
	for _, v := range values {
		if x, ok := v.(float64); ok && math.Abs(x) > most {
			most = math.Abs(x)
		}
	}
	return most
}
