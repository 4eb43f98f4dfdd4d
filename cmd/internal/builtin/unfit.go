package builtin

import (
	"fmt"
	"maps"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// numeric maps the name of a flag to the columns that it names and that must be numbers.
type numeric map[string][]string

// numeric returns the columns that must be numbers for a training: the label if it is not a
// class, the weight, and the columns that the estimator's own flags name.
func (a TrainArgs) numeric(g model.Target, beside map[string][]string) numeric {
	n := numeric{"--weight": one(a.Weight)}
	if g == model.Number || g == model.Rank {
		n["--label"] = one(a.Label)
	}
	maps.Copy(n, beside)
	return n
}

// unfit returns an error about columns of the files at a path that are invalid as a whole:
// columns of text that must be numbers, and columns named by flags that have no value in any
// row. If a column is text only because of a few cells, the error names the first such cell.
func (a InputArgs) unfit(b *engine.Builder, path string, schema *arrow.Schema, must numeric, named map[string][]string) error {
	all := map[string][]string{}
	for _, of := range []map[string][]string{must, named} {
		for flag, columns := range of {
			all[flag] = append(all[flag], columns...)
		}
	}
	for _, flag := range slices.Sorted(maps.Keys(all)) {
		for _, column := range all[flag] {
			field, ok := schema.FieldsByName(column)
			if !ok || columnTypeOf(field[0].Type) != texts {
				continue
			}
			needed := slices.Contains(must[flag], column)
			if a.empty(b, path, needed, column) {
				return fmt.Errorf("%s: column %q of %s has no value in any row: name another", flag, column, path)
			}
			if !needed {
				continue
			}
			if why := a.mixed(b, path, column); why.Why != "" {
				return fmt.Errorf("%s: %s: %s", flag, why.Why, remedyFor(why, column))
			}
			advice := ""
			if flag == "--label" {
				advice = ": algorithms that predict classes take text"
			}
			return fmt.Errorf("%s: column %q of %s is text, and must be numbers%s", flag, column, path, advice)
		}
	}
	return nil
}

// textFeature returns the error about a feature that is text but must be numbers. If the column
// is text only because of a few cells, the error names the first such cell.
func (a InputArgs) textFeature(b *engine.Builder, path, column string) error {
	const advice = "name the columns of numbers with --features, or have text made features with --encode"
	if a.empty(b, path, true, column) {
		return emptyFeature(path, column)
	}
	switch why := a.mixed(b, path, column); {
	case why.Why == "":
		return fmt.Errorf("column %q of %s is text: %s", column, path, advice)
	case why.Long:
		return fmt.Errorf("%s: name the columns of numbers with --features, or %s", why.Why, remedyFor(why, column))
	default:
		return fmt.Errorf("%s: %s; otherwise %s", why.Why, remedyFor(why, column), advice)
	}
}

// emptyFeature returns the error about a feature without a value in any row. Its missing values
// cannot be replaced, and if rows with missing values were left out, no rows would remain.
func emptyFeature(path, column string) error {
	return fmt.Errorf("column %q of %s has no value in any row: leave it out, naming the columns to predict from with --features", column, path)
}

// remedyFor returns advice for a column that is text only because of a few cells.
func remedyFor(why operators.TextColumn, column string) string {
	if why.Long {
		return fmt.Sprintf("have it read as numbers, which are rounded, with --types %s=float64", column)
	}
	return "where that stands for a missing value, say so with --null"
}

// mixed returns the reason why a CSV column that has numbers is text. For other columns it
// returns the zero value.
func (a InputArgs) mixed(b *engine.Builder, path, column string) (why operators.TextColumn) {
	if a.form(path) != csvForm {
		return why
	}
	options, err := a.csv(path)
	if err != nil {
		return why
	}
	told, err := operators.MixedColumns(b, path, options)
	if err != nil {
		return why // the caller reports its error without this explanation
	}
	return told[column]
}

// empty reports whether a CSV column has no value in any row. Files may have more rows than are
// used to infer types. In that case, empty reads all rows only if far is set.
func (a InputArgs) empty(b *engine.Builder, path string, far bool, column string) bool {
	if a.form(path) != csvForm {
		return false
	}
	options, err := a.csv(path)
	if err != nil {
		return false
	}
	empty, err := operators.EmptyColumns(b, path, options, far, column)
	return err == nil && len(empty) > 0
}

// emptyFeatures returns an error for a feature without any value if text is encoded, or if
// missing values are replaced or their rows are left out. It does not read large files again to
// find such features.
func (a TrainArgs) emptyFeatures(b *engine.Builder, schema *arrow.Schema, p *columnPlan, raw bool) error {
	if raw && !a.Encode && a.Missing == "" {
		return nil // trees accept missing values
	}
	for _, column := range p.wanted {
		field, _ := schema.FieldsByName(column)
		_, typed := a.Types[column]
		if (typed || columnTypeOf(field[0].Type) == texts) && a.empty(b, a.Input, false, column) {
			return emptyFeature(a.Input, column)
		}
	}
	return nil
}
