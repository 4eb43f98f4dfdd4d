package builtin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/operators"
)

// The names of the columns that a model adds are stored in the model. By default they are the
// usual names for models of its kind. A column of a file may already have such a name. If the
// model reads that column, training chooses other names, because otherwise the model could not
// be applied to any file. If the model does not read the column, prediction chooses other names
// in its output.

// OutputArgs are flags that name the columns that models add.
type OutputArgs struct {
	PredictionColumn  string `placeholder:"NAME" param:"PredictionCol" help:"Name of the column of predictions (default: prediction, of clusters cluster or component; followed by _1 or so where the rows have such a column)."`
	DistanceColumn    string `placeholder:"NAME" param:"DistanceCol" help:"Of kmeans: name of the column of distances (default: distance, followed by _1 or so where the rows have such a column)."`
	ProbabilityColumn string `placeholder:"NAME" param:"ProbabilityCol DecisionCol" help:"Name of the columns of probabilities, or of decision values, each followed by _ and the class or component (default: probability or decision, of gmm probabilities; followed by _1 or so where the rows have such a column)."`
}

// outputFlag is a flag that names one or more columns that a model adds. name is the value of
// the flag, or "" if the flag is not given.
type outputFlag struct{ flag, name string }

// flags returns the three flags with their values.
func (o OutputArgs) flags() []outputFlag {
	return []outputFlag{{"--prediction-column", o.PredictionColumn}, {"--probability-column", o.ProbabilityColumn}, {"--distance-column", o.DistanceColumn}}
}

// given returns the column names that the flags give.
func (o OutputArgs) given() []string {
	var names []string
	for _, f := range o.flags() {
		if f.name != "" {
			names = append(names, f.name)
		}
	}
	return names
}

// different returns an error if flags give the same name to two outputs.
func (o OutputArgs) different() error {
	for i, f := range o.flags() {
		for _, other := range o.flags()[:i] {
			if f.name != "" && f.name == other.name {
				return fmt.Errorf("%s and %s are both %q", other.flag, f.flag, f.name)
			}
		}
	}
	return nil
}

// unused returns name with underscores appended until the result is neither the name of a
// column of schema nor given by a flag.
func (o OutputArgs) unused(schema *arrow.Schema, name string) string {
	for name = unused(schema, name); slices.Contains(o.given(), name); {
		name = unused(schema, name+"_")
	}
	return name
}

// free returns name if taken returns false for it. Otherwise it returns name_1, name_2, or the
// next such name for which taken returns false.
func free(name string, taken func(name string) bool) string {
	for made, n := name, 1; ; n++ {
		if !taken(made) {
			return made
		}
		made = fmt.Sprintf("%s_%d", name, n)
	}
}

// named chooses the names of the columns that a model will add; "" stands for the usual name.
// reads has the names of the columns that the model reads. If a name is not given by a flag, it
// differs from all names in reads and from the names that flags give.
func (o OutputArgs) named(adds model.Prediction, reads []string) (prediction, probability, distance string) {
	others := slices.Concat(reads, o.given())
	of := func(flag, usual string) string {
		if flag != "" || usual == "" {
			return flag
		}
		made := free(usual, func(name string) bool {
			return slices.ContainsFunc(others, func(r string) bool { return r == name || usual == adds.Scores && strings.HasPrefix(r, name+"_") })
		})
		if made == usual {
			return ""
		}
		return made
	}
	return of(o.PredictionColumn, adds.Column), of(o.ProbabilityColumn, adds.Scores), of(o.DistanceColumn, adds.Distance)
}

// keptPrefix is the prefix of the temporary names of file columns that have the name of a column
// that the model adds.
const keptPrefix = "superstep kept "

// renameNamesakes renames columns of rows that the model does not read and that have the name of a
// column that the model makes. The result now maps the names in the file to the new names.
func renameNamesakes(rows *engine.Dataset, m model.Model) (renamed *engine.Dataset, now map[string]string, err error) {
	made, err := madeBy(m)
	now = map[string]string{}
	if err != nil {
		return rows, now, err
	}
	reads := inputsOf(m)
	for _, name := range names(arrowrows.Arrow(rows.Schema())) {
		if slices.Contains(made, name) && !slices.Contains(reads, name) {
			now[name] = unused(arrowrows.Arrow(rows.Schema()), keptPrefix+name)
			rows = operators.Rename(rows, name, now[name])
		}
	}
	return rows, now, nil
}

// madeBy returns the columns that a model makes, including intermediate ones.
func madeBy(m model.Model) ([]string, error) {
	binder, ok := m.(model.Binder)
	if !ok {
		return nil, nil
	}
	inputs := inputsOf(m)
	layout := model.NewLayout(inputs...)
	if _, err := binder.Bind(layout); err != nil {
		return nil, err
	}
	made := scoreColumns(lastOf(m))
	for name, cell := range layout.Columns() {
		if cell >= len(inputs) {
			made = append(made, name)
		}
	}
	slices.Sort(made)
	return made, nil
}

// write returns the rows to write to path: the columns kept, which come from the file, followed
// by the columns added, which the model makes. If a kept column and an added column have the
// same name, write renames the added column. It restores the names of kept columns that
// renameNamesakes has changed. now is the result of renameNamesakes.
func (o OutputArgs) write(path string, rows *engine.Dataset, m model.Model, kept, added []string, now map[string]string) (*engine.Dataset, error) {
	adds := predictionOf(m)
	prediction, probability, distance := adds.Column, adds.Scores, adds.Distance
	classed := func(name string) (class string, ok bool) {
		if probability == "" || !slices.Contains(scoreColumns(m), name) {
			return "", false
		}
		return strings.TrimPrefix(name, probability), true
	}
	taken := func(name string) bool { return slices.Contains(kept, name) }
	group := func(prefix string) bool { // all columns of probabilities get the same prefix
		return slices.ContainsFunc(added, func(name string) bool {
			class, ok := classed(name)
			return ok && taken(prefix+class)
		})
	}
	if o.ProbabilityColumn != "" && probability == "" {
		return nil, fmt.Errorf("--probability-column does not go with a model of kind %s, which gives no probabilities", m.Kind())
	}
	if o.DistanceColumn != "" && distance == "" {
		return nil, fmt.Errorf("--distance-column does not go with a model of kind %s, which gives no distances", m.Kind())
	}
	for _, f := range []outputFlag{{"--prediction-column", o.PredictionColumn}, {"--distance-column", o.DistanceColumn}} {
		if f.name != "" && taken(f.name) {
			return nil, fmt.Errorf("%s is %q, a column of %s: choose another name, or name the columns to keep with --keep", f.flag, f.name, path)
		}
	}
	if o.ProbabilityColumn != "" && group(o.ProbabilityColumn) {
		return nil, fmt.Errorf("--probability-column is %q, and %s has such columns: choose another name, or name the columns to keep with --keep", o.ProbabilityColumn, path)
	}
	prefix := o.ProbabilityColumn
	if prefix == "" {
		prefix = free(probability, group)
	}
	to := make([]string, len(added))
	for i, name := range added {
		class, ok := classed(name)
		switch {
		case ok:
			to[i] = prefix + class
		case name == prediction && o.PredictionColumn != "":
			to[i] = o.PredictionColumn
		case name == distance && o.DistanceColumn != "":
			to[i] = o.DistanceColumn
		default:
			to[i] = free(name, taken)
		}
	}
	columns, final := slices.Clone(kept), slices.Concat(kept, to)
	for i, name := range columns {
		if other, ok := now[name]; ok {
			columns[i] = other
		}
	}
	for i, name := range final {
		if slices.Contains(final[:i], name) {
			return nil, fmt.Errorf("two columns of the output would be named %q: choose other names with --prediction-column, --probability-column and --distance-column", name)
		}
	}
	return renamed(operators.Select(rows, slices.Concat(columns, added)...), final), nil
}

// renamed renames column i of rows to to[i]. It renames columns with keptPrefix last, after the
// outputs of the model that had their final names have been renamed.
func renamed(rows *engine.Dataset, to []string) *engine.Dataset {
	if rows.Poisoned() {
		return rows
	}
	from := names(arrowrows.Arrow(rows.Schema()))
	for _, kept := range []bool{false, true} {
		for i, name := range from {
			if name != to[i] && strings.HasPrefix(name, keptPrefix) == kept && !rows.Poisoned() {
				rows = operators.Rename(rows, name, to[i])
			}
		}
	}
	return rows
}

// notes returns notes about outputs that were renamed because the file has columns with their names.
func (o OutputArgs) notes(path string, r *engine.Result) []string {
	if r.Graph == nil {
		return nil
	}
	var list []string
	for _, n := range r.Graph.Nodes {
		if n.Op != "Rename" || strings.HasPrefix(n.Attrs[0].Value, "superstep ") || strings.HasPrefix(n.Attrs[1].Value, "superstep ") {
			continue
		}
		from, to := n.Attrs[0].Value, n.Attrs[1].Value
		if to != o.PredictionColumn && to != o.DistanceColumn && (o.ProbabilityColumn == "" || !strings.HasPrefix(to, o.ProbabilityColumn+"_")) {
			list = append(list, fmt.Sprintf("%q in place of %q", to, from))
		}
	}
	if len(list) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%s has columns with the names of the model's outputs, which are written as %s: --prediction-column, --probability-column and --distance-column give them other names, --keep leaves columns of the file out", path, humanize.List(list, ", ", 4))}
}
