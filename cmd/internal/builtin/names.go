package builtin

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
)

// featureNames returns what the components of a model's features are called: names of
// columns, column=value for encoded text, column[i] for the components of vectors. before
// are the models that rows go through first. Where there is nothing to tell, it returns a
// name of the vector's column with the index.
func featureNames(before []model.Model, inputs []model.Input) func(i int) string {
	var list []string
	complete := true
	for _, in := range inputs {
		made := componentNames(before, in.Column)
		if made == nil && sizeOf(in.Type) == 0 && isVector(in.Type) {
			complete = false
		}
		if made == nil && isVector(in.Type) {
			for j := range min(sizeOf(in.Type), maxNamed) {
				made = append(made, fmt.Sprintf("%s[%d]", in.Column, j))
			}
		} else if made == nil {
			made = []string{in.Column}
		}
		list = append(list, made...)
	}
	return func(i int) string {
		switch {
		case i < len(list):
			return list[i]
		case len(inputs) == 1 || !complete:
			return fmt.Sprintf("%s[%d]", inputs[0].Column, i)
		}
		return fmt.Sprintf("feature %d", i)
	}
}

// maxNamed bounds how many components of a vector get names beforehand.
const maxNamed = 1 << 16

func isVector(kind string) bool {
	return len(kind) >= 6 && (kind[:6] == "vector" || kind[:6] == "sparse")
}

// componentNames returns the names of the components of a column that stages made; nil
// where none of them tells.
func componentNames(stages []model.Model, column string) []string {
	for i := len(stages) - 1; i >= 0; i-- {
		switch m := stages[i].(type) {
		case *prepare.AssemblerModel:
			if orName(m.Params.Output, "features") == column {
				return assembledNames(stages[:i], m)
			}
		case *prepare.OneHotModel:
			if k := madeAt(m.Params.Columns, m.Params.Outputs, column); k >= 0 {
				return oneHotNames(stages[:i], m, k)
			}
		case *prepare.ImputerModel:
			if k := madeAt(m.Params.Columns, m.Params.Outputs, column); k >= 0 {
				return sourceNames(stages[:i], m.Params.Columns[k], column)
			}
		case *prepare.IndexerModel:
			if k := madeAt(m.Params.Columns, m.Params.Outputs, column); k >= 0 {
				return sourceNames(stages[:i], m.Params.Columns[k], column)
			}
		case *prepare.ScalerModel:
			if k := madeAt(m.Columns, m.Outputs, column); k >= 0 {
				return sourceNames(stages[:i], m.Columns[k], column)
			}
		}
	}
	return nil
}

// sourceNames are those of a column that was changed but keeps its meaning.
func sourceNames(before []model.Model, from, made string) []string {
	if list := componentNames(before, from); list != nil {
		return list
	}
	if from == made {
		return nil // the file's own, which may be a vector
	}
	return []string{from}
}

func assembledNames(before []model.Model, m *prepare.AssemblerModel) []string {
	var all []string
	for k, c := range m.Params.Columns {
		list := componentNames(before, c)
		switch {
		case len(list) == m.Sizes[k]:
			all = append(all, list...)
		case m.Sizes[k] == 1:
			all = append(all, c)
		default:
			for j := range m.Sizes[k] {
				all = append(all, fmt.Sprintf("%s[%d]", c, j))
			}
		}
	}
	return all
}

func oneHotNames(before []model.Model, m *prepare.OneHotModel, k int) []string {
	column := m.Params.Columns[k]
	if list := sourceNames(before, column, ""); len(list) == 1 {
		column = list[0]
	}
	var all []string
	if m.Params.Unknown == prepare.Keep {
		all = append(all, column+"=?")
	}
	for _, v := range m.Values[k] {
		all = append(all, column+"="+v)
	}
	return all[:min(len(all), m.Size(k))]
}

// madeAt returns which of a preparation's columns has a name once it is made, or -1.
func madeAt(columns, outputs []string, name string) int {
	if len(outputs) > 0 {
		columns = outputs
	}
	for i, c := range columns {
		if c == name {
			return i
		}
	}
	return -1
}

func orName(name, other string) string {
	if name == "" {
		return other
	}
	return name
}
