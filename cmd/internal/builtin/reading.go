package builtin

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// readingNotes tell what was read otherwise than it may have been meant: of the columns that
// are named, or of all.
func readingNotes(r *engine.Result, columns []string) []string {
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
	for _, note := range roundedNotes(counters) {
		if about(note) {
			notes = append(notes, note)
		}
	}
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
	const most = 8
	var list []string
	for _, text := range cells[:min(len(cells), most)] {
		list = append(list, fmt.Sprintf("%d of %s", sums[text], text))
	}
	if n := len(cells) - most; n > 0 {
		list = append(list, fmt.Sprintf("and %d more", n))
	}
	return append(notes, "cells read as missing values: "+strings.Join(list, ", "))
}

// sourceCounters sums the counters of all operators by name.
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

// roundedNotes tell of the columns with whole numbers that are rounded, how many there are and
// the first.
func roundedNotes(counters map[string]int64) []string {
	first := map[string]operators.RoundedCells{}
	sums := map[string]int64{}
	for name, n := range counters {
		cells, ok := operators.ParseRounded(name)
		if !ok || n == 0 {
			continue
		}
		if f, is := first[cells.Column]; !is || cmp.Or(cmp.Compare(cells.Path, f.Path), cmp.Compare(cells.Line, f.Line)) < 0 {
			first[cells.Column] = cells
		}
		sums[cells.Column] += n
	}
	var notes []string
	for _, column := range slices.Sorted(maps.Keys(first)) {
		f, are := first[column], "are"
		if sums[column] == 1 {
			are = "is"
		}
		notes = append(notes, fmt.Sprintf("column %q has %s beyond 2^53 that %s rounded as numbers, the first at %s:%d: %s",
			column, plural(sums[column], "whole number", "whole numbers"), are, f.Path, f.Line, f.Value))
	}
	return notes
}

// spellings is a flag with a list of texts between commas, of which some may begin as flags do.
type spellings []string

// Decode implements kong.MapperValue.
func (s *spellings) Decode(ctx *kong.DecodeContext) error {
	token := ctx.Scan.Pop()
	text, ok := token.Value.(string)
	if token.IsEOL() || !ok {
		return errors.New("--null is missing its texts")
	}
	*s = append(*s, strings.Split(text, ",")...)
	return nil
}
