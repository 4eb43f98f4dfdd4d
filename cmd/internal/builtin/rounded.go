package builtin

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/operators"
)

// If a column is read as numbers (float64), whole numbers beyond 2^53 are rounded. Classes,
// clusters and queries are compared without conversion to float64, so that different values
// stay different.

// numbersIn returns the columns of rows that a model reads as numbers.
func numbersIn(m model.Model) (columns []string) {
	for _, in := range m.Inputs() {
		if strings.HasPrefix(in.Type, "int") || strings.HasPrefix(in.Type, "uint") || strings.HasPrefix(in.Type, "float") {
			columns = append(columns, in.Column)
		}
	}
	return columns
}

// numericOf returns the columns of rows that a training reads as numbers. m is the trained
// model.
func (a training) numericOf(m model.Model) []string {
	columns := append(numbersIn(m), a.Weight)
	if g := a.target(); g == model.Number || g == model.Rank {
		columns = append(columns, a.Label)
	}
	beside := a.otherColumns()
	for _, flag := range slices.Sorted(maps.Keys(beside)) {
		columns = append(columns, beside[flag]...)
	}
	return columns
}

// numbers returns the columns that an evaluation reads as numbers, without the columns that a
// model reads.
func (a EvaluateArgs) numbers(kind string) []string {
	columns := append([]string{a.Weight, a.Score}, a.Features...)
	switch kind {
	case regressionKind:
		columns = append(columns, a.Label, a.Prediction)
	case rankingKind:
		columns = append(columns, a.Label)
	}
	return columns
}

// roundedNotes returns a note for each column in numbers that has rounded whole numbers. A note
// has the count of the rounded numbers and the first of them.
func roundedNotes(counters map[string]int64, numbers []string) []string {
	first := map[string]operators.RoundedCells{}
	sums := map[string]int64{}
	for name, n := range counters {
		cells, ok := operators.ParseRounded(name)
		if !ok || n == 0 || !slices.Contains(numbers, cells.Column) {
			continue
		}
		if f, is := first[cells.Column]; !is || cmp.Or(cmp.Compare(cells.Path, f.Path), cmp.Compare(cells.Line, f.Line)) < 0 {
			first[cells.Column] = cells
		}
		sums[cells.Column] += n
	}
	var notes []string
	for _, column := range slices.Sorted(maps.Keys(first)) {
		are := "are"
		if sums[column] == 1 {
			are = "is"
		}
		notes = append(notes, fmt.Sprintf("column %q has %s beyond 2^53 that %s rounded as numbers, the first at %s: %s",
			column, humanize.Count(sums[column], "whole number"), are, first[column].Place(), first[column].Value))
	}
	return notes
}
