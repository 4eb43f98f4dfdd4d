package builtin

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// naming says how names are written. Exact naming quotes ambiguous names, so that no two names
// are alike.
type naming struct{ exact bool }

// featureNames returns a function that names the components of a model's features: the name of
// a column, column=value for encoded text, or column[i] for the components of a vector. Names
// that would be alike get quotes. before are the models that rows go through first. A component
// without a known name is called by the vector's column and its index.
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

// all returns the names of the components of a model's features, as far as they are known.
// complete tells whether all are.
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

// Column returns how a column is written in a name.
func (n naming) Column(name string) string {
	if n.exact && strings.ContainsAny(name, `="[`) {
		return strconv.Quote(name)
	}
	return name
}

// Value returns how a value of a column is written in a name.
func (n naming) Value(text string) string {
	if n.exact && (text == "?" || strings.ContainsAny(text, `="`)) {
		return strconv.Quote(text)
	}
	return text
}

// maxNamed bounds for how many components of a vector names are made in advance.
const maxNamed = 1 << 16

// components returns the names of the components of a column that stages made, or nil if no
// stage knows them.
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

// source returns the names of the components of a column that a stage changed without changing
// its meaning. before are the names known for the column that it was made from.
func (n naming) source(before []string, from, made string) []string {
	if before != nil || from == made { // known already, or the file's own column, which may be a vector
		return before
	}
	return []string{n.Column(from)}
}
