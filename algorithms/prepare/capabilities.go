package prepare

import (
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// Treats implements model.Treater.
func (m *ImputerModel) Treats(column string) (missing, unseen model.Treatment) {
	if slices.Contains(m.Params.Columns, column) {
		missing = model.FilledIn
	}
	return missing, unseen
}

// Treats implements model.Treater.
func (m *AssemblerModel) Treats(column string) (missing, unseen model.Treatment) {
	return treatsMissing(m.Params.Columns, column, m.Params.Unknown, m.Params.NullMissing), unseen
}

// Treats implements model.Treater.
func (m *OneHotModel) Treats(column string) (missing, unseen model.Treatment) {
	if slices.Contains(m.Params.Columns, column) {
		unseen = map[Unknown]model.Treatment{Shares: model.LikeAverage, Zeros: model.LikeNone, Skip: model.LeftOut}[m.Params.Unknown]
	}
	return treatsMissing(m.Params.Columns, column, m.Params.Unknown, m.Params.NullMissing), unseen
}

func treatsMissing(columns []string, column string, u Unknown, null bool) model.Treatment {
	switch {
	case !slices.Contains(columns, column):
		return model.Untold
	case u == Skip:
		return model.LeftOut
	case null:
		return model.Unpredicted
	}
	return model.Untold
}

// Categories implements model.Categorizer.
func (m *OneHotModel) Categories() model.Categories {
	return model.Categories{Values: valuesBy(m.Params.Columns, m.Values), Rows: m.Rows()}
}

// Categories implements model.Categorizer.
func (m *IndexerModel) Categories() model.Categories {
	return model.Categories{Values: valuesBy(m.Params.Columns, m.Values)}
}

func valuesBy(columns []string, values [][]string) map[string][]string {
	by := map[string][]string{}
	for i, column := range columns {
		by[column] = values[i]
	}
	return by
}

// Describe implements model.Describer.
func (m *ImputerModel) Describe(func(i int) string) model.Description {
	t := model.Table{Title: "put in place of missing values", Columns: []string{"column", "value"}}
	for i, f := range m.Fills {
		value := any(f.Value)
		if len(f.Numbers) > 0 {
			value = f.Numbers[0]
		}
		t.Rows = append(t.Rows, []any{m.Params.Columns[i], value})
	}
	return model.Description{Tables: []model.Table{t}}
}

// Describe implements model.Describer.
func (m *OneHotModel) Describe(func(i int) string) model.Description {
	return describeValues(m.Params.Columns, m.Values)
}

// Describe implements model.Describer.
func (m *IndexerModel) Describe(func(i int) string) model.Description {
	return describeValues(m.Params.Columns, m.Values)
}

func describeValues(columns []string, values [][]string) model.Description {
	t := model.Table{Title: "values", Columns: []string{"column", "number", "value"}}
	for i, list := range values {
		for k, v := range list {
			t.Rows = append(t.Rows, []any{columns[i], float64(k), v})
		}
	}
	return model.Description{Tables: []model.Table{t}}
}

// Derives implements model.Deriver.
func (m *ImputerModel) Derives() (from, made []string) {
	return m.Params.Columns, OutputNames(m.Params.Columns, m.Params.Outputs)
}

// Derives implements model.Deriver.
func (m *IndexerModel) Derives() (from, made []string) {
	return m.Params.Columns, OutputNames(m.Params.Columns, m.Params.Outputs)
}

// Derives implements model.Deriver.
func (m *ScalerModel) Derives() (from, made []string) {
	return m.Columns, OutputNames(m.Columns, m.Outputs)
}

// ComponentNames implements model.ComponentNamer.
func (m *AssemblerModel) ComponentNames(column string, n model.Naming, before func(column string) []string) (all []string) {
	if column != m.Params.output() {
		return nil
	}
	for k, c := range m.Params.Columns {
		list := before(c)
		switch {
		case len(list) == m.Sizes[k]:
			all = append(all, list...)
		case m.Sizes[k] == 1:
			all = append(all, n.Column(c))
		default:
			for j := range m.Sizes[k] {
				all = append(all, fmt.Sprintf("%s[%d]", n.Column(c), j))
			}
		}
	}
	return all
}

// ComponentNames implements model.ComponentNamer.
func (m *OneHotModel) ComponentNames(column string, n model.Naming, before func(column string) []string) (all []string) {
	k := slices.Index(OutputNames(m.Params.Columns, m.Params.Outputs), column)
	if k < 0 {
		return nil
	}
	of := m.Params.Columns[k]
	switch list := before(of); {
	case len(list) == 1:
		of = list[0]
	case list == nil:
		of = n.Column(of)
	}
	if m.Params.Unknown == Keep {
		all = append(all, of+"=?")
	}
	for _, v := range m.Values[k] {
		all = append(all, of+"="+n.Value(v))
	}
	return all[:min(len(all), m.Size(k))]
}
