package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/operators"
)

// index is the set of columns that contain an index written by pandas.
type index map[columnOf]bool

// indexOf returns a function that records index columns of the files at path.
func (a InputArgs) indexOf(path string) func(column string) {
	return func(column string) {
		if a.index != nil {
			a.index[columnOf{path, column}] = true
		}
	}
}

// features returns the elements of columns that are features if --features is not given.
// columns has the columns of the training file. An index of pandas is not a feature, because it
// only numbers the rows.
func (a TrainArgs) features(columns []string) []string {
	return slices.DeleteFunc(columns, func(c string) bool { return a.index[columnOf{a.Input, c}] })
}

// noColumn returns the error about a training file without features.
func (a TrainArgs) noColumn() error {
	for _, at := range slices.SortedFunc(maps.Keys(a.index), func(x, y columnOf) int { return strings.Compare(x.column, y.column) }) {
		if at.path == a.Input {
			return fmt.Errorf("%s has no column left to predict from, as %q is an index of pandas: --features can name it", a.Input, at.column)
		}
	}
	return fmt.Errorf("%s has no column left to predict from", a.Input)
}

// indexNotes returns a note about columns that are not used as features because they are an index of
// pandas. read has the columns that flags name; the note does not mention these columns.
func (a TrainArgs) indexNotes(r *engine.Result, read []string) []string {
	if len(a.Features) > 0 || r.Graph == nil {
		return nil
	}
	var columns []string
	for _, n := range r.Graph.Nodes {
		if !slices.ContainsFunc(n.Attrs, func(at plan.Attr) bool { return at.Key == "path" && at.Value == a.Input }) {
			continue
		}
		for _, at := range n.Attrs {
			if at.Key == operators.IndexColumn && !slices.Contains(read, at.Value) && !slices.Contains(columns, at.Value) {
				columns = append(columns, at.Value)
			}
		}
	}
	switch len(columns) {
	case 0:
		return nil
	case 1:
		return []string{fmt.Sprintf("column %q of %s is an index of pandas, and is left out of the features: --features can name it", columns[0], a.Input)}
	}
	return []string{fmt.Sprintf("columns %s of %s are an index of pandas, and are left out of the features: --features can name them", humanize.Quoted(columns, " and "), a.Input)}
}
