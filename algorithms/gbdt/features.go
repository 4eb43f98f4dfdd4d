package gbdt

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/batch"
)

// maxConstrained bounds the feature numbers in constraints on vectors if the type of the vector
// column does not have the number of components.
const maxConstrained = 1 << 20

// featureNames returns a function find from the name of a feature to its number, and dim, an
// upper bound of all feature numbers. A feature has the name of its column. The name of a
// component of a vector is the letter f and its number, counted from 0, such as "f0".
func (p *Params) featureNames(schema *arrow.Schema) (find func(name string) (int, error), dim int, err error) {
	if len(p.FeatureCols) > 0 {
		return func(name string) (int, error) {
			if j := slices.Index(p.FeatureCols, name); j >= 0 {
				return j, nil
			}
			return 0, fmt.Errorf("there is no feature %q: the features are %s", name, strings.Join(p.FeatureCols, ", "))
		}, len(p.FeatureCols), nil
	}
	vector := p.VectorCol
	if vector == "" {
		if vector, err = rows.OnlyVector(schema); err != nil {
			return nil, 0, err
		}
	}
	i, err := batch.FindColumn(schema, vector)
	if err != nil {
		return nil, 0, err
	}
	if dim = batch.VectorDim(schema.Field(i).Type); dim == 0 {
		dim = maxConstrained
	}
	return func(name string) (int, error) {
		j, err := strconv.Atoi(strings.TrimPrefix(name, "f"))
		if err != nil || name != featureName(j) || j < 0 || j >= dim {
			return 0, fmt.Errorf("there is no feature %q: those of column %q are f0, f1 and so on", name, vector)
		}
		return j, nil
	}, dim, nil
}

// categorical returns a function that reports whether feature j is categorical.
func (p *Params) categorical(schema *arrow.Schema) func(j int) bool {
	return func(j int) bool {
		if len(p.FeatureCols) == 0 {
			return slices.Contains(p.CategoricalAt, j)
		}
		name := p.FeatureCols[j]
		i, err := batch.FindColumn(schema, name)
		return slices.Contains(p.CategoricalCols, name) || err == nil && schema.Field(i).Type.ID() == arrow.STRING
	}
}

// featureName returns the name of component j of a vector.
func featureName(j int) string { return "f" + strconv.Itoa(j) }

// reader finds the columns of the features in the layout l: the columns that o names, or else
// those of the training. Text that is not one of the categories is treated as missing.
func (m *Model) reader(l *model.Layout, o PredictOptions) (*signature.Reader, error) {
	m.prepare()
	return m.inputs.BindCoded(l, o.common(), m.Dim, &signature.Coded{Codes: m.codes, Unseen: math.NaN()})
}

// categories returns the names of the categories of each feature of a row.
func (m *Model) categories() [][]string {
	switch {
	case m.Columns == nil || m.Ensemble.Categories == nil:
		return m.Ensemble.Categories
	case m.inputs.IsVector():
		return nil
	}
	all := make([][]string, len(m.inputs))
	for at, j := range m.Columns {
		if int(j) < len(all) {
			all[j] = m.Ensemble.Categories[at]
		}
	}
	return all
}

// place returns the index, among the features of the ensemble, of feature j of a row. It
// returns −1 if the ensemble does not have this feature.
func (m *Model) place(j int) int {
	if m.Columns == nil {
		return j
	}
	at := sort.Search(len(m.Columns), func(i int) bool { return int(m.Columns[i]) >= j })
	if at < len(m.Columns) && int(m.Columns[at]) == j {
		return at
	}
	return -1
}

// load does what fill does, but returns false if p does not fit the features of the model.
func (m *Model) load(p signature.Point, x []float64) bool {
	if !p.Fits(m.Dim) {
		return false
	}
	m.fill(p, x)
	return true
}

// fill writes the values of the ensemble's features in p to x.
func (m *Model) fill(p signature.Point, x []float64) {
	switch {
	case p.Indices == nil && m.Columns == nil:
		copy(x, p.Values)
		return
	case p.Indices == nil:
		for at, j := range m.Columns {
			x[at] = p.Values[j]
		}
		return
	}
	absent := math.NaN()
	if m.AbsentIsZero {
		absent = 0
	}
	for at := range x {
		x[at] = absent
	}
	for q, j := range p.Indices {
		if at := m.place(int(j)); at >= 0 {
			x[at] = p.Values[q]
		}
	}
}
