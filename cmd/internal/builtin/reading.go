package builtin

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/operators"
)

// noFeature returns the error about a column that has neither numbers, text nor vectors.
func (a TrainArgs) noFeature(column string, t arrow.DataType) error {
	is := fmt.Sprintf("column %q of %s is %s, not a number", column, a.Input, batch.TypeName(t))
	switch {
	case len(a.Features) == 0:
		return fmt.Errorf("%s: name the columns to use with --features", is)
	case t.ID() == arrow.TIMESTAMP || t.ID() == arrow.DATE32:
		return fmt.Errorf("--features: %s: derive a column of numbers from it, such as the hour or the days since the first", is)
	}
	return fmt.Errorf("--features: %s: write it as a column of numbers or of text", is)
}

// readingNotes returns notes about columns whose types may differ from what the user meant.
// columns has the names of the columns to look at; nil means all columns. numbers has the names
// of the columns that are read as numbers; for these, the notes also report which numbers were
// rounded.
func readingNotes(r *engine.Result, columns, numbers []string) []string {
	if r.Graph == nil {
		return nil
	}
	about := func(text string) bool {
		return len(columns) == 0 || slices.ContainsFunc(columns, func(c string) bool { return strings.Contains(text, fmt.Sprintf("column %q", c)) })
	}
	var notes []string
	for _, n := range r.Graph.Nodes {
		for _, a := range n.Attrs {
			if note := a.Value + "; if it is one, --no-header says so"; a.Key == operators.NumberHeader && !slices.Contains(notes, note) {
				notes = append(notes, note)
			}
			if a.Key == operators.LeftOutColumns && !slices.Contains(notes, a.Value) {
				notes = append(notes, a.Value)
			}
			if a.Key == operators.MixedColumn && about(a.Value) && !slices.Contains(notes, a.Value) {
				notes = append(notes, a.Value)
			}
		}
	}
	counters := sourceCounters(r)
	notes = append(notes, roundedNotes(counters, numbers)...)
	var cells []string
	sums := map[string]int64{}
	for name, n := range counters {
		if text, ok := strings.CutPrefix(name, operators.CellsMissing); ok && about(text) {
			cells = append(cells, text)
			sums[text] = n
		}
	}
	if len(cells) == 0 {
		return notes
	}
	slices.Sort(cells)
	for i, text := range cells {
		cells[i] = fmt.Sprintf("%d of %s", sums[text], text)
	}
	return append(notes, "cells read as missing values: "+humanize.List(cells, ", ", 8))
}

// sourceCounters returns counter name -> sum of that counter over all operators.
func sourceCounters(r *engine.Result) map[string]int64 {
	sums := map[string]int64{}
	for _, v := range r.Report.Vertices {
		for _, s := range v.Subtasks {
			for _, o := range s.Operators {
				for _, c := range o.Counters {
					sums[c.Name] += c.Value
				}
			}
		}
	}
	return sums
}

// spellings is the value of a flag with texts separated by commas. A text may begin with -,
// like a flag.
type spellings []string

// Decode implements kong.MapperValue.
func (s *spellings) Decode(ctx *kong.DecodeContext) error {
	token := ctx.Scan.Pop()
	text, ok := token.Value.(string)
	if token.IsEOL() || !ok {
		return errors.New("--null is empty: give the texts that stand for missing values")
	}
	*s = append(*s, strings.Split(text, ",")...)
	return nil
}
