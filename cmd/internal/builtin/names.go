package builtin

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/prepare"
)

// naming says how names are made. Exact ones have in quotes what could be taken for something
// else, so that no two are alike.
type naming struct{ exact bool }

// featureNames returns what the components of a model's features are called: names of
// columns, column=value for encoded text, column[i] for the components of vectors; and with
// quotes where two would be called the same. before are the models that rows go through first.
// Where there is nothing to tell, it returns a name of the vector's column with the index.
func featureNames(before []model.Model, inputs []model.Input) func(i int) string {
	list, complete := naming{}.all(before, inputs)
	times := map[string]int{}
	for _, name := range list {
		times[name]++
	}
	if len(times) < len(list) {
		exact, _ := naming{exact: true}.all(before, inputs)
		for i, name := range list {
			if times[name] > 1 {
				list[i] = exact[i]
			}
		}
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

// all returns the names of the components of a model's features, as far as something tells them,
// and whether that is so of all.
func (n naming) all(before []model.Model, inputs []model.Input) (list []string, complete bool) {
	complete = true
	for _, in := range inputs {
		made := n.components(before, in.Column)
		if made == nil && sizeOf(in.Type) == 0 && isVector(in.Type) {
			complete = false
		}
		if made == nil && isVector(in.Type) {
			for j := range min(sizeOf(in.Type), maxNamed) {
				made = append(made, fmt.Sprintf("%s[%d]", n.column(in.Column), j))
			}
		} else if made == nil {
			made = []string{n.column(in.Column)}
		}
		list = append(list, made...)
	}
	return list, complete
}

// column is how a column is called.
func (n naming) column(name string) string {
	if n.exact && strings.ContainsAny(name, `="[`) {
		return strconv.Quote(name)
	}
	return name
}

// value is how a value of a column is.
func (n naming) value(text string) string {
	if n.exact && (text == "?" || strings.ContainsAny(text, `="`)) {
		return strconv.Quote(text)
	}
	return text
}

// maxNamed bounds how many components of a vector get names beforehand.
const maxNamed = 1 << 16

func isVector(kind string) bool {
	return len(kind) >= 6 && (kind[:6] == "vector" || kind[:6] == "sparse")
}

// components returns the names of the components of a column that stages made; nil
// where none of them tells.
func (n naming) components(stages []model.Model, column string) []string {
	for i := len(stages) - 1; i >= 0; i-- {
		switch m := stages[i].(type) {
		case *prepare.AssemblerModel:
			if orName(m.Params.Output, "features") == column {
				return n.assembled(stages[:i], m)
			}
		case *prepare.OneHotModel:
			if k := madeAt(m.Params.Columns, m.Params.Outputs, column); k >= 0 {
				return n.oneHot(stages[:i], m, k)
			}
		case *prepare.ImputerModel:
			if k := madeAt(m.Params.Columns, m.Params.Outputs, column); k >= 0 {
				return n.source(stages[:i], m.Params.Columns[k], column)
			}
		case *prepare.IndexerModel:
			if k := madeAt(m.Params.Columns, m.Params.Outputs, column); k >= 0 {
				return n.source(stages[:i], m.Params.Columns[k], column)
			}
		case *prepare.ScalerModel:
			if k := madeAt(m.Columns, m.Outputs, column); k >= 0 {
				return n.source(stages[:i], m.Columns[k], column)
			}
		}
	}
	return nil
}

// source are those of a column that was changed but keeps its meaning.
func (n naming) source(before []model.Model, from, made string) []string {
	if list := n.components(before, from); list != nil {
		return list
	}
	if from == made {
		return nil // the file's own, which may be a vector
	}
	return []string{n.column(from)}
}

func (n naming) assembled(before []model.Model, m *prepare.AssemblerModel) []string {
	var all []string
	for k, c := range m.Params.Columns {
		list := n.components(before, c)
		switch {
		case len(list) == m.Sizes[k]:
			all = append(all, list...)
		case m.Sizes[k] == 1:
			all = append(all, n.column(c))
		default:
			for j := range m.Sizes[k] {
				all = append(all, fmt.Sprintf("%s[%d]", n.column(c), j))
			}
		}
	}
	return all
}

func (n naming) oneHot(before []model.Model, m *prepare.OneHotModel, k int) []string {
	column := m.Params.Columns[k]
	if list := n.source(before, column, ""); len(list) == 1 {
		column = list[0]
	}
	var all []string
	if m.Params.Unknown == prepare.Keep {
		all = append(all, column+"=?")
	}
	for _, v := range m.Values[k] {
		all = append(all, column+"="+n.value(v))
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
