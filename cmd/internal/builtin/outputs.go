package builtin

import (
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
)

// What a model adds to rows has names that the model tells, by default those of its kind. Two
// things may have such a name before it: a column that the model reads, which training steps
// aside for, as the model could be applied to nothing; and another column of a file, which
// prediction steps aside for, when it writes.

// OutputArgs are flags that name what models add.
type OutputArgs struct {
	PredictionColumn  string `placeholder:"NAME" param:"PredictionCol" help:"Name of the column of predictions (default: prediction, of clusters cluster or component; with _1 or so behind it where the rows have such a column)."`
	DistanceColumn    string `placeholder:"NAME" param:"DistanceCol" help:"Of kmeans: name of the column of distances (default: distance, with _1 or so behind it where the rows have such a column)."`
	ProbabilityColumn string `placeholder:"NAME" param:"ProbabilityCol DecisionCol" help:"Name of the columns of probabilities, or of decision values, each with _ and the class or component behind it (default: probability or decision, of gmm probabilities; with _1 or so behind it where the rows have such a column)."`
}

// outputFlag is a flag that names a column, or columns, that a model adds, and that name, "" where
// it was not given.
type outputFlag struct{ flag, name string }

// flags returns the flags, in the order of the columns.
func (o OutputArgs) flags() []outputFlag {
	return []outputFlag{{"--prediction-column", o.PredictionColumn}, {"--probability-column", o.ProbabilityColumn}, {"--distance-column", o.DistanceColumn}}
}

// given returns the names that flags give.
func (o OutputArgs) given() []string {
	var names []string
	for _, f := range o.flags() {
		if f.name != "" {
			names = append(names, f.name)
		}
	}
	return names
}

// different refuses the same name for two outputs.
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

// unused returns a name, longer where need be, that no column has and no output is given.
func (o OutputArgs) unused(schema *arrow.Schema, name string) string {
	for name = unused(schema, name); slices.Contains(o.given(), name); {
		name = unused(schema, name+"_")
	}
	return name
}

// free returns a name, with a number behind it where need be, with which taken finds nothing
// wrong.
func free(name string, taken func(name string) bool) string {
	for made, n := name, 1; ; n++ {
		if !taken(made) {
			return made
		}
		made = fmt.Sprintf("%s_%d", name, n)
	}
}

// named returns the names of what a model will add that reads some columns, "" for the usual
// ones. Those that no flag gives are apart from what is read and from what flags give.
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

// keptPrefix begins the names of columns of a file while a model adds columns of their names.
const keptPrefix = "superstep kept "

// aside gives the columns of a file that the model does not read, and of which it makes ones of
// the same name, other names. It returns these by their names in the file.
func aside(rows *engine.Dataset, m model.Model) (renamed *engine.Dataset, now map[string]string, err error) {
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

// madeBy returns the columns that a model makes, those on the way among them.
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
	made := spreadColumns(lastOf(m))
	for name, cell := range layout.Columns() {
		if cell >= len(inputs) {
			made = append(made, name)
		}
	}
	slices.Sort(made)
	return made, nil
}

// write gives what a model added the names that it is to have beside the columns of the file
// that are kept, and those their own again. added are the columns of the model, in order.
func (o OutputArgs) write(path string, rows *engine.Dataset, m model.Model, kept, added []string, now map[string]string) (*engine.Dataset, error) {
	adds := predictionOf(m)
	prediction, probability, distance := adds.Column, adds.Scores, adds.Distance
	classed := func(name string) (class string, ok bool) {
		if probability == "" || !slices.Contains(spreadColumns(m), name) {
			return "", false
		}
		return strings.TrimPrefix(name, probability), true
	}
	taken := func(name string) bool { return slices.Contains(kept, name) }
	group := func(prefix string) bool { // the columns of probabilities get the same name
		return slices.ContainsFunc(added, func(name string) bool {
			class, ok := classed(name)
			return ok && taken(prefix+class)
		})
	}
	if o.ProbabilityColumn != "" && probability == "" {
		return nil, fmt.Errorf("--probability-column says nothing of a model of kind %s, which gives no probabilities", m.Kind())
	}
	if o.DistanceColumn != "" && distance == "" {
		return nil, fmt.Errorf("--distance-column says nothing of a model of kind %s, which gives no distances", m.Kind())
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

// renamed gives all columns new names, those of outputs first, which free the others.
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

// notes tell of outputs that were named otherwise than the model calls them, as the file has
// such columns.
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
	const most = 4
	text := strings.Join(list[:min(len(list), most)], ", ")
	if n := len(list) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return []string{fmt.Sprintf("%s has columns of the names of what the model adds, which is written as %s: --prediction-column, --probability-column and --distance-column name it otherwise, --keep leaves columns of the file out", path, text)}
}
