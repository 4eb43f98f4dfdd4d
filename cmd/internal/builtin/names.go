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

// featureNames returns a function that names component i of a model's features. A name is the name
// of a column, column=value for encoded text, or column[i] for a component of a vector. Names that
// would be equal are quoted. before has the stages that precede the model. A component whose name is
// not known gets the name of the vector's column with its index.
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

// Column returns the name of a column as a part of a feature's name.
func (n naming) Column(name string) string {
	if n.exact && strings.ContainsAny(name, `="[`) {
		return strconv.Quote(name)
	}
	return name
}

// Value returns a value of a column as a part of a feature's name.
func (n naming) Value(text string) string {
	if n.exact && (text == "?" || strings.ContainsAny(text, `="`)) {
		return strconv.Quote(text)
	}
	return text
}

// maxNamed is the maximal number of components of a vector whose names all returns.
const maxNamed = 1 << 16

// components returns the names of the components of a column that stages have made, or nil if no
// stage knows the names.
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

// source returns the names of the components of the column made, which a stage derived from the
// column from without changing its meaning. before has the known names for the column from.
func (n naming) source(before []string, from, made string) []string {
	if before != nil || from == made { // names are known, or the column is the file's own, which may be a vector
		return before
	}
	return []string{n.Column(from)}
}
