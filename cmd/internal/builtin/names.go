package builtin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// naming formats the names of features. If exact is set, it quotes names that could be ambiguous, so
// that different features never have the same name.
type naming struct{ exact bool }

// featureNames returns a function that returns the name of component i of a model's features.
// The name is the name of a column, column=value for encoded text, or column[i] for a component
// of a vector. If two names would be equal, column names and values in them are quoted. before
// has the stages that precede the model. If the name of a component is not known, the function
// returns the name of the vector column with the index of the component.
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

// all returns the names of the components of a model's features. complete is false if the names of
// some components are not known.
func (n naming) all(before []model.Model, inputs []model.Input) (list []string, complete bool) {
	complete = true
	for _, in := range inputs {
		made := n.components(before, in.Column)
		if made == nil && model.VectorDim(in.Type) == 0 && model.IsVector(in.Type) {
			complete = false
		}
		if made == nil && model.IsVector(in.Type) {
			for j := range min(model.VectorDim(in.Type), maxNamed) {
				made = append(made, fmt.Sprintf("%s[%d]", n.Column(in.Column), j))
			}
		} else if made == nil {
			made = []string{n.Column(in.Column)}
		}
		list = append(list, made...)
	}
	return list, complete
}

// Column returns the name of a column in the form in which it is part of the name of a feature.
func (n naming) Column(name string) string {
	if n.exact && strings.ContainsAny(name, `="[`) {
		return strconv.Quote(name)
	}
	return name
}

// Value returns a value of a column in the form in which it is part of the name of a feature.
func (n naming) Value(text string) string {
	if n.exact && (text == "?" || strings.ContainsAny(text, `="`)) {
		return strconv.Quote(text)
	}
	return text
}

// maxNamed is the maximal number of components of a vector whose names all returns.
const maxNamed = 1 << 16

// components returns the names of the components of a vector column that stages have made, or
// nil if no stage knows the names.
func (n naming) components(stages []model.Model, column string) []string {
	for i, stage := range slices.Backward(stages) {
		before := func(column string) []string { return n.components(stages[:i], column) }
		if d, ok := stage.(model.Deriver); ok {
			from, made := d.Derives()
			if k := slices.Index(made, column); k >= 0 {
				return n.source(before(from[k]), from[k], column)
			}
		}
		if m, ok := stage.(model.ComponentNamer); ok {
			if names := m.ComponentNames(column, n, before); names != nil {
				return names
			}
		}
	}
	return nil
}

// source returns the names of the components of a column that a stage has derived without
// changing the meaning of the components. The parameter from is the name of the original
// column, made is the name of the derived column, and before has the known names of the
// components of the original column.
func (n naming) source(before []string, from, made string) []string {
	if before != nil || from == made { // the names are known, or the column comes from the file and may be a vector
		return before
	}
	return []string{n.Column(from)}
}
